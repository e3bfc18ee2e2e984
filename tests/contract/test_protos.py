"""What the protos promise, read from the descriptors that clients get."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from flue.agentindex.v1 import agent_index_pb2
from flue.store.v1 import store_pb2

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    file.name: file
    for file in FileDescriptorSet.FromString((ROOT / "generated/flue.binpb").read_bytes()).file
}
STORE = store_pb2.DESCRIPTOR.services_by_name["Store"]
AGENT_INDEX = agent_index_pb2.DESCRIPTOR.services_by_name["AgentIndex"]
METHODS = [*STORE.methods, *AGENT_INDEX.methods]
OURS = [store_pb2.DESCRIPTOR, agent_index_pb2.DESCRIPTOR]
STREAMS_WITHOUT_TOKEN = {"ReadTranscript", "ReadMessage", "Watch"}

MESSAGE_TYPE, FIELD = 4, 2


def method_names(service):
    return [(method.name, method.server_streaming) for method in service.methods]


def all_fields():
    for file in OURS:
        for message in file.message_types_by_name.values():
            yield from message.fields


def field_comments():
    for file in OURS:
        for location in FILES[file.name].source_code_info.location:
            match tuple(location.path):
                case (kind, message, part, field) if (kind, part) == (MESSAGE_TYPE, FIELD):
                    descriptor = FILES[file.name].message_type[message]
                    yield descriptor.name, descriptor.field[field].name, location.leading_comments


def test_every_rpc_stands_in_its_service():
    assert method_names(STORE) == [
        ("CreateSession", False),
        ("GetSession", False),
        ("ListSessions", True),
        ("UpdateSession", False),
        ("DeleteSession", False),
        ("AppendMessage", False),
        ("AppendMessages", False),
        ("ListMessages", True),
        ("SearchMessages", True),
        ("WriteMemoryEntry", False),
        ("UpdateMemoryEntry", False),
        ("DeleteMemoryEntry", False),
        ("RecentMemory", True),
        ("ScopeMemory", True),
        ("ScopeMemorySize", False),
        ("SearchMemory", True),
    ]
    assert method_names(AGENT_INDEX) == [
        ("Snapshot", True),
        ("Resolve", False),
        ("ReadPage", False),
        ("ReadTranscript", True),
        ("ReadMessage", True),
        ("Search", True),
        ("Watch", True),
        ("Usage", True),
    ]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_list_is_a_stream_of_pages_with_a_token(method):
    if not method.server_streaming or method.name in STREAMS_WITHOUT_TOKEN:
        assert "page_token" not in method.input_type.fields_by_name
        return
    assert "limit" in method.input_type.fields_by_name
    assert "page_token" in method.input_type.fields_by_name
    assert "next_page_token" in method.output_type.fields_by_name
    first = method.output_type.fields_by_number[1]
    assert first.is_repeated
    assert first.message_type is not None


def test_only_these_fields_tell_absent_from_zero():
    assert {f.full_name for f in all_fields() if f.containing_oneof is not None} == {
        "flue.store.v1.SearchMessagesRequest.window",
        "flue.store.v1.UpdateMemoryEntryRequest.content",
        "flue.store.v1.UpdateMemoryEntryRequest.pinned",
        "flue.agentindex.v1.Summary.cost_usd",
        "flue.agentindex.v1.Hit.score",
        "flue.agentindex.v1.UsageRow.cost_usd",
        "flue.agentindex.v1.ReadPageRequest.offset",
        "flue.agentindex.v1.ReadTranscriptRequest.offset",
    }


def test_fields_are_numbered_from_one_without_gaps():
    for file in OURS:
        for message in file.message_types_by_name.values():
            assert [f.number for f in message.fields] == list(range(1, len(message.fields) + 1))


def test_integers_have_the_width_of_what_they_count():
    by_type = {FieldDescriptor.TYPE_INT32: set(), FieldDescriptor.TYPE_INT64: set()}
    for field in all_fields():
        if field.type in by_type:
            by_type[field.type].add((field.containing_type.name, field.name))
    narrow = {name for _, name in by_type[FieldDescriptor.TYPE_INT32]}
    assert narrow == {
        "limit", "window", "index", "message_count", "tool_call_count", "prompt_count",
        "session_count", "hidden_subagents", "start", "end",
    }  # fmt: skip
    wide = {name for owner, name in by_type[FieldDescriptor.TYPE_INT64]}
    assert wide == {
        "id", "after_id", "characters", "input", "output", "cache_read", "cache_write", "offset",
        "start", "next", "file_size", "text_size", "text_offset", "bytes_scanned", "max_bytes",
    }  # fmt: skip


def test_protos_import_only_well_known_types():
    for file in OURS:
        assert list(FILES[file.name].dependency) == ["google/protobuf/timestamp.proto"]


def test_every_limit_states_its_default():
    comments = [text for _, field, text in field_comments() if field in {"limit", "max_bytes"}]
    assert len(comments) == 12
    for text in comments:
        assert "0 = " in text, text


def test_the_descriptor_set_is_that_of_the_stubs():
    for file in OURS:
        kept = FileDescriptorProto()
        kept.CopyFrom(FILES[file.name])
        kept.ClearField("source_code_info")
        served = FileDescriptorProto()
        file.CopyToProto(served)
        # buf writes json_name and protoc's embedded form does not.
        for message in kept.message_type:
            for nested in (message, *message.nested_type):
                for field in nested.field:
                    field.ClearField("json_name")
        assert kept == served
