"""Servicers without a transport, by grpcio-testing, with the errors round them."""

from __future__ import annotations

import logging
import threading

import grpc
import grpc_testing
import pytest
from google.protobuf.message_factory import GetMessageClass

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue.store.v1 import store_pb2 as st
from flue_grpc import config, errors
from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.rpc.agentindex_service import AgentIndexService
from flue_grpc.rpc.calls import Kind, Method
from flue_grpc.rpc.interceptors.chain import request_to_response, request_to_stream
from flue_grpc.rpc.interceptors.drain import Drain
from flue_grpc.rpc.interceptors.errors import Errors
from flue_grpc.rpc.store_service import StoreService
from flue_grpc.services import index_settings
from flue_grpc.store.store import Store
from flue_grpc.store.values import EntryDraft
from tests.wire import homes

STORE = st.DESCRIPTOR.services_by_name["Store"]
INDEX = ai.DESCRIPTOR.services_by_name["AgentIndex"]


class Intercepted:
    """A servicer whose calls go through the interceptors as bytes, as on a transport."""

    def __init__(self, service, servicer) -> None:
        for method in service.methods:
            setattr(self, method.name, around(method, getattr(servicer, method.name)))


def around(descriptor, behaviour):
    answer = GetMessageClass(descriptor.output_type)
    method = Method(
        f"/{descriptor.containing_service.full_name}/{descriptor.name}",
        Kind.FINITE if descriptor.server_streaming else Kind.UNARY,
        GetMessageClass(descriptor.input_type).FromString,
        answer.SerializeToString,
    )
    chain = (Errors(lambda error: None),)

    def unary(request, context):
        made = request_to_response(method, behaviour, chain)
        return answer.FromString(made(request.SerializeToString(), context))

    def stream(request, context):
        made = request_to_stream(method, behaviour, chain)
        yield from map(answer.FromString, made(request.SerializeToString(), context))

    return stream if descriptor.server_streaming else unary


class Caller:
    """Calls a servicer and waits for what comes."""

    def __init__(self, service, servicer) -> None:
        logging.getLogger("grpc_testing").setLevel(logging.CRITICAL)
        self._service = service
        self._server = grpc_testing.server_from_dictionary(
            {service: Intercepted(service, servicer)}, grpc_testing.strict_real_time()
        )

    def unary(self, request):
        name = type(request).__name__.removesuffix("Request")
        method = self._service.methods_by_name[name]
        call = self._server.invoke_unary_unary(method, (), request, None)
        response, _, code, details = call.termination()
        return response, code, details

    def stream(self, request, count=None):
        """Take all responses; the first ``count``, then cancel, when that is given."""
        name = type(request).__name__.removesuffix("Request")
        method = self._service.methods_by_name[name]
        call = self._server.invoke_unary_stream(method, (), request, None)
        found = []
        try:
            while count is None or len(found) < count:
                found.append(call.take_response())
        except ValueError:  # there is no more
            pass
        if count is not None:
            call.cancel()
            return found, None, None
        _, code, details = call.termination()
        return found, code, details


@pytest.fixture
def real_store(tmp_path):
    with_store = Store.open(tmp_path / "store.db")
    yield with_store
    with_store.close()


@pytest.fixture
def store(real_store):
    return Caller(STORE, StoreService(real_store, Drain()))


@pytest.fixture
def index(tmp_path):
    home = tmp_path / "home"
    for number in range(15):
        homes.write_session(home, number)
    found = config.combine({"home": home, "data_dir": tmp_path / "data"}, {})
    opened = AgentIndex.open(index_settings(found, {}))
    pause = threading.Event()
    while opened.building:
        pause.wait(0.002)
    yield Caller(INDEX, AgentIndexService(opened, found.settings, Drain()))
    opened.close()


def ok(answer):
    response, code, _ = answer
    assert code is grpc.StatusCode.OK
    return response


def test_a_session_is_made_read_changed_and_deleted(store):
    made = ok(store.unary(st.CreateSessionRequest(id="s", title="a"))).session
    assert (made.id, made.title) == ("s", "a")
    assert ok(store.unary(st.GetSessionRequest(id="s"))).session == made
    changed = ok(store.unary(st.UpdateSessionRequest(id="s", title=""))).session
    assert changed.title == ""
    assert changed.created_at == made.created_at
    assert changed.updated_at.ToNanoseconds() > made.updated_at.ToNanoseconds()
    ok(store.unary(st.DeleteSessionRequest(id="s")))
    _, code, details = store.unary(st.GetSessionRequest(id="s"))
    assert (code, details) == (grpc.StatusCode.NOT_FOUND, "there is no such session")


def test_messages_are_appended_listed_and_searched(store):
    ok(store.unary(st.CreateSessionRequest(id="s", title="subagent: x")))
    one = ok(
        store.unary(
            st.AppendMessageRequest(
                session_id="s", message=st.Message(id=99, role="user", content="blue whale")
            )
        )
    ).message
    assert one.id == 1
    two = ok(
        store.unary(
            st.AppendMessagesRequest(
                session_id="s", messages=[st.Message(role="assistant", content="blue sky")] * 2
            )
        )
    ).messages
    listed, code, _ = store.stream(st.ListMessagesRequest(session_id="s", after_id=1))
    assert code is grpc.StatusCode.OK
    assert [message for response in listed for message in response.messages] == list(two)
    request = st.SearchMessagesRequest(query="blue", scope=st.SEARCH_SCOPE_ALL, window=1)
    found, _, _ = store.stream(request)
    results = [result for response in found for result in response.results]
    assert [result.message.id for result in results] == [3, 2, 1]
    assert all(result.is_subagent for result in results)
    assert [message.id for message in results[1].window] == [1, 2, 3]
    for scope in (st.SEARCH_SCOPE_UNSPECIFIED, st.SEARCH_SCOPE_USER, 77):
        found, code, _ = store.stream(st.SearchMessagesRequest(query="blue", scope=scope))
        assert code is grpc.StatusCode.OK
        assert [len(response.results) for response in found] == [0]


def test_what_the_server_sets_is_ignored_on_append(store):
    ok(store.unary(st.CreateSessionRequest(id="s")))
    claimed = st.Message(id=99, session_id="other", role="user", content="x", truncated=True)
    claimed.created_at.FromSeconds(1)
    for request_id in ("r", "r"):
        request = st.AppendMessageRequest(session_id="s", message=claimed, request_id=request_id)
        made = ok(store.unary(request)).message
        assert (made.id, made.session_id, made.truncated) == (1, "s", False)
        assert made.created_at.seconds > 1_000_000_000
        claimed.id += 1


@pytest.mark.parametrize(
    ("asked", "each_side"),
    [({}, 3), ({"window": 0}, 0), ({"window": 1}, 1), ({"window": 20}, 20), ({"window": 21}, 20)],
)
def test_a_window_is_three_on_each_side_unless_asked_and_at_most_twenty(store, asked, each_side):
    ok(store.unary(st.CreateSessionRequest(id="s")))
    said = [st.Message(role="user", content="found" if n == 24 else "other") for n in range(50)]
    ok(store.unary(st.AppendMessagesRequest(session_id="s", messages=said)))
    [response], _, _ = store.stream(st.SearchMessagesRequest(query="found", **asked))
    expected = list(range(25 - each_side, 26 + each_side)) if each_side else []
    assert [message.id for message in response.results[0].window] == expected


def test_the_match_is_whole_and_its_window_without_images_and_extra(store):
    ok(store.unary(st.CreateSessionRequest(id="s")))
    call = st.ToolCall(
        id="c",
        type="function",
        function=st.ToolCallFunction(name="f", arguments="y" * 20_000),
        extra={"thought": '"Zm9v"'},
    )
    said = st.Message(
        role="user", content="found " + "x" * 20_000, images=["data:a", "data:b"], tool_calls=[call]
    )
    ok(store.unary(st.AppendMessageRequest(session_id="s", message=said)))
    for include, images in ((False, ["", ""]), (True, ["data:a", "data:b"])):
        request = st.SearchMessagesRequest(query="found", include_images=include)
        [response], _, _ = store.stream(request)
        [result] = response.results
        assert result.message.content == said.content
        assert list(result.message.tool_calls) == [call]
        assert list(result.message.images) == images
        assert not result.message.truncated
        [cut] = result.window
        assert (cut.content, cut.truncated) == (said.content[:16384], True)
        assert cut.tool_calls[0].function.arguments == "y" * 16384
        assert dict(cut.tool_calls[0].extra) == {}
        assert list(cut.images) == ["", ""]


def test_limits_above_the_maximum_are_the_maximum(store, real_store):
    ok(store.unary(st.CreateSessionRequest(id="s")))
    for _ in range(2):
        said = [st.Message(role="user", content="word")] * 501
        ok(store.unary(st.AppendMessagesRequest(session_id="s", messages=said)))
    for _ in range(1002):
        real_store.write_memory_entry(EntryDraft("a", "word"))
    for request, field in (
        (st.SearchMessagesRequest(query="word", window=0, limit=1001), "results"),
        (st.SearchMemoryRequest(query="word", scopes=["a"], limit=2**31 - 1), "entries"),
        (st.RecentMemoryRequest(scopes=["a"], limit=1001), "entries"),
    ):
        found, _, _ = store.stream(request)
        assert sum(len(getattr(response, field)) for response in found) == 1000
        assert found[-1].next_page_token != ""


def test_memory_is_written_changed_measured_and_searched(store):
    entry = ok(store.unary(st.WriteMemoryEntryRequest(scope="a", content="né", pinned=True))).entry
    assert (entry.id, entry.pinned) == (1, True)
    assert ok(store.unary(st.ScopeMemorySizeRequest(scope="a"))).characters == 2
    changed = ok(store.unary(st.UpdateMemoryEntryRequest(id=1, pinned=False))).entry
    assert (changed.content, changed.pinned) == ("né", False)
    changed = ok(store.unary(st.UpdateMemoryEntryRequest(id=1, content=""))).entry
    assert (changed.content, changed.pinned) == ("", False)
    for request in (
        st.RecentMemoryRequest(scopes=["a"]),
        st.ScopeMemoryRequest(scope="a"),
    ):
        [response], _, _ = store.stream(request)
        assert [each.id for each in response.entries] == [1]
    [response], _, _ = store.stream(st.SearchMemoryRequest(scopes=["a"], query="x"))
    assert list(response.entries) == []
    ok(store.unary(st.DeleteMemoryEntryRequest(id=1)))
    _, code, _ = store.unary(st.DeleteMemoryEntryRequest(id=1))
    assert code is grpc.StatusCode.NOT_FOUND


def test_errors_of_the_domain_get_their_code_without_a_transport_too(store, real_store):
    def busy(*arguments):
        raise errors.DatabaseBusyError("the database is busy")

    real_store.get_session = busy
    _, code, details = store.unary(st.GetSessionRequest(id="s"))
    assert (code, details) == (grpc.StatusCode.UNAVAILABLE, "the database is busy")
    found, code, _ = store.stream(st.ListMessagesRequest(session_id="none"))
    assert (found, code) == ([], grpc.StatusCode.NOT_FOUND)


def test_a_list_can_be_left_early(store):
    for number in range(40):
        ok(store.unary(st.CreateSessionRequest(id=f"s{number}")))
    [first], _, _ = store.stream(st.ListSessionsRequest(), 1)
    assert len(first.sessions) == 10
    assert first.next_page_token


def test_transcripts_are_listed_resolved_and_read(index):
    found, code, _ = index.stream(ai.SnapshotRequest())
    assert code is grpc.StatusCode.OK
    summaries = [summary for response in found for summary in response.summaries]
    assert [summary.id for summary in summaries] == [
        homes.session_id(number) for number in reversed(range(15))
    ]
    named = {"tool": "claude", "id": homes.session_id(3)}
    summary = ok(index.unary(ai.ResolveRequest(**named))).summary
    assert summary == summaries[11]
    assert (summary.title, summary.message_count, summary.tokens.output) == ("question 3", 2, 4)
    assert list(summary.resume.args) == ["--resume", homes.session_id(3)]
    page = ok(index.unary(ai.ReadPageRequest(**named))).page
    assert [(message.role, message.text) for message in page.messages] == [
        (ai.ROLE_USER, "question 3"),
        (ai.ROLE_ASSISTANT, "yes"),
    ]
    assert page.eof
    assert page.next == page.file_size == summary.file_size
    assert page.revision == summary.revision
    [response], _, _ = index.stream(ai.ReadTranscriptRequest(**named))
    assert list(response.page.messages) == list(page.messages)
    assert not response.caught_up
    [piece], _, _ = index.stream(ai.ReadMessageRequest(**named, index=0))
    assert piece.text == "question 3"
    [rows], _, _ = index.stream(ai.UsageRequest(group_by=[ai.GROUP_BY_TOOL]))
    assert [(list(row.keys), row.tokens.input, row.session_count) for row in rows.rows] == [
        (["claude"], 45, 15)
    ]


def test_backward_starts_at_the_end_and_an_explicit_zero_at_the_start(index):
    named = {"tool": "claude", "id": homes.session_id(3), "direction": ai.DIRECTION_BACKWARD}
    page = ok(index.unary(ai.ReadPageRequest(**named, limit=1))).page
    assert [message.text for message in page.messages] == ["yes"]
    page = ok(index.unary(ai.ReadPageRequest(**named, offset=0))).page
    assert (list(page.messages), page.start, page.next) == ([], 0, 0)
