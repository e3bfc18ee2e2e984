from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue.store.v1 import store_pb2 as st
from flue_grpc.render.plain import to_plain


def test_every_field_is_there_and_typed():
    summary = to_plain(
        ai.Summary(
            id="x",
            file_size=2**40,
            models=["m"],
            tokens=ai.TokenUsage(input=5),
            ended_at=Timestamp(seconds=1_772_355_600, nanos=1000),
        )
    )
    assert summary["file_size"] == 2**40
    assert summary["tokens"] == {"input": 5, "output": 0, "cache_read": 0, "cache_write": 0}
    assert summary["ended_at"] == "2026-03-01T09:00:00.000001Z"
    assert summary["models"] == ["m"]
    assert (summary["started_at"], summary["resume"], summary["cost_usd"]) == (None, None, None)
    assert (summary["title"], summary["message_count"]) == ("", 0)
    assert list(summary) == [field.name for field in ai.Summary.DESCRIPTOR.fields]


def test_a_recorded_zero_is_not_absent():
    assert to_plain(ai.Summary(cost_usd=0))["cost_usd"] == 0.0


def test_enums_are_short_names():
    message = to_plain(ai.Message(kind=ai.KIND_TOOL_CALL, role=ai.ROLE_USER))
    assert (message["kind"], message["role"]) == ("tool_call", "user")
    assert to_plain(ai.Message(kind=99))["kind"] == "99"


def test_maps_and_nested_messages():
    call = st.ToolCall(id="c", function=st.ToolCallFunction(name="f"), extra={"index": "0"})
    plain = to_plain(st.Message(tool_calls=[call]))
    assert plain["tool_calls"] == [
        {
            "id": "c",
            "type": "",
            "function": {"name": "f", "arguments": ""},
            "extra": {"index": "0"},
        }
    ]
