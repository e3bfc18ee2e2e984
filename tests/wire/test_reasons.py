"""Every reason of the contract that a request alone can bring about, from the outside."""

from __future__ import annotations

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue.store.v1 import store_pb2 as st
from tests.wire import homes

ID = homes.session_id(0)
INVALID = grpc.StatusCode.INVALID_ARGUMENT
LATE = Timestamp(seconds=253_402_300_800)
EARLY = Timestamp(seconds=-62_135_596_801)
ODD = Timestamp(seconds=0, nanos=-1)


def message(**fields):
    return st.Message(**({"role": "user", "content": "x"} | fields))


def scopes(**fields):
    return {"scopes": ["a"]} | fields


READ = {"tool": "claude", "id": ID}
# Each with its reason, the field it blames and its metadata.
CASES = [
    (st.CreateSessionRequest(id="x" * 129), "BAD_ID", "id", {}),
    (st.CreateSessionRequest(id="a\nb"), "BAD_ID", "id", {}),
    (st.CreateSessionRequest(request_id="r" * 65), "BAD_REQUEST_ID", "request_id", {}),
    (
        st.CreateSessionRequest(title="é" * (1 << 19) + "x"),
        "VALUE_TOO_LARGE",
        "title",
        {"limit": "1048576"},
    ),
    (
        st.UpdateSessionRequest(id="s", title="x" * ((1 << 20) + 1)),
        "VALUE_TOO_LARGE",
        "title",
        {"limit": "1048576"},
    ),
    (st.ListSessionsRequest(limit=-1), "BAD_LIMIT", "limit", {}),
    (st.ListSessionsRequest(page_token="x"), "BAD_PAGE_TOKEN", "page_token", {}),
    (
        st.AppendMessageRequest(session_id="s", message=message(role="robot")),
        "BAD_ROLE",
        "message.role",
        {},
    ),
    (st.AppendMessageRequest(session_id="s"), "BAD_ROLE", "message.role", {}),
    (
        st.AppendMessageRequest(session_id="s", message=message(content="x" * (32 << 20))),
        "VALUE_TOO_LARGE",
        "message",
        {"limit": "33554432"},
    ),
    (st.AppendMessagesRequest(session_id="s"), "BAD_BATCH", "messages", {"limit": "1000"}),
    (
        st.AppendMessagesRequest(session_id="s", messages=[message()] * 1001),
        "BAD_BATCH",
        "messages",
        {"limit": "1000"},
    ),
    (
        st.AppendMessagesRequest(session_id="s", messages=[message(role="")]),
        "BAD_ROLE",
        "messages.role",
        {},
    ),
    (st.ListMessagesRequest(session_id="s", limit=-5), "BAD_LIMIT", "limit", {}),
    (st.ListMessagesRequest(session_id="s", page_token="é"), "BAD_PAGE_TOKEN", "page_token", {}),
    (st.SearchMessagesRequest(query=" \t"), "EMPTY_QUERY", "query", {}),
    (st.SearchMessagesRequest(query="x" * 8193), "QUERY_TOO_LONG", "query", {"limit": "8192"}),
    (st.SearchMessagesRequest(query="x", window=-1), "BAD_LIMIT", "window", {}),
    (st.SearchMessagesRequest(query="x", limit=-1), "BAD_LIMIT", "limit", {}),
    (st.SearchMessagesRequest(query="x", page_token="AQ"), "BAD_PAGE_TOKEN", "page_token", {}),
    (st.WriteMemoryEntryRequest(content="x"), "EMPTY_SCOPE", "scope", {}),
    (
        st.WriteMemoryEntryRequest(scope="a", content="é" * (1 << 19) + "x"),
        "VALUE_TOO_LARGE",
        "content",
        {"limit": "1048576"},
    ),
    (st.UpdateMemoryEntryRequest(id=1), "BAD_COMBINATION", None, {}),
    (st.RecentMemoryRequest(**scopes(limit=-1)), "BAD_LIMIT", "limit", {}),
    (st.RecentMemoryRequest(**scopes(page_token="x")), "BAD_PAGE_TOKEN", "page_token", {}),
    (st.ScopeMemoryRequest(scope="a", limit=-1), "BAD_LIMIT", "limit", {}),
    (st.ScopeMemoryRequest(scope="a", page_token="x"), "BAD_PAGE_TOKEN", "page_token", {}),
    (st.SearchMemoryRequest(**scopes(query="")), "EMPTY_QUERY", "query", {}),
    (st.SearchMemoryRequest(**scopes(query="x", limit=-1)), "BAD_LIMIT", "limit", {}),
    (
        st.SearchMemoryRequest(**scopes(query="x", page_token="x")),
        "BAD_PAGE_TOKEN",
        "page_token",
        {},
    ),
    (ai.SnapshotRequest(limit=-1), "BAD_LIMIT", "limit", {}),
    (ai.SnapshotRequest(page_token="x"), "BAD_PAGE_TOKEN", "page_token", {}),
    (ai.SnapshotRequest(since=LATE), "BAD_TIME", "since", {}),
    (ai.SnapshotRequest(until=EARLY), "BAD_TIME", "until", {}),
    (ai.SnapshotRequest(since=ODD), "BAD_TIME", "since", {}),
    (
        ai.SnapshotRequest(since=Timestamp(seconds=5), until=Timestamp(seconds=5)),
        "BAD_COMBINATION",
        "since",
        {},
    ),
    (ai.ResolveRequest(tool="cursor", id=ID), "UNKNOWN_TOOL", "tool", {"tool": "cursor"}),
    (ai.ResolveRequest(id=ID), "UNKNOWN_TOOL", "tool", {"tool": ""}),
    (ai.ReadPageRequest(**READ, offset=-1), "BAD_OFFSET", "offset", {}),
    (ai.ReadPageRequest(**READ, limit=-1), "BAD_LIMIT", "limit", {}),
    (ai.ReadPageRequest(**READ, direction=7), "BAD_DIRECTION", "direction", {"value": "7"}),
    (ai.ReadTranscriptRequest(**READ, direction=-1), "BAD_DIRECTION", "direction", None),
    (ai.ReadTranscriptRequest(**READ, offset=-1), "BAD_OFFSET", "offset", {}),
    (ai.ReadTranscriptRequest(**READ, limit=-1), "BAD_LIMIT", "limit", {}),
    (
        ai.ReadTranscriptRequest(**READ, follow=True, direction=2),
        "BAD_COMBINATION",
        "follow",
        {},
    ),
    (ai.ReadMessageRequest(**READ, offset=-1), "BAD_OFFSET", "offset", {}),
    (ai.ReadMessageRequest(**READ, index=-1), "BAD_OFFSET", "index", {}),
    (ai.SearchRequest(query=" \n"), "EMPTY_QUERY", "query", {}),
    (ai.SearchRequest(query="x" * 8193), "QUERY_TOO_LONG", "query", {"limit": "8192"}),
    (
        ai.SearchRequest(query="x" * 8193, mode=ai.SEARCH_MODE_RANKED),
        "QUERY_TOO_LONG",
        "query",
        {"limit": "8192"},
    ),
    (
        ai.SearchRequest(query="w " * 65, mode=ai.SEARCH_MODE_RANKED),
        "QUERY_TOO_LONG",
        "query",
        {"limit": "64"},
    ),
    (
        ai.SearchRequest(query='é "open', mode=ai.SEARCH_MODE_RANKED),
        "BAD_QUERY",
        "query",
        {"position": "2"},
    ),
    (ai.SearchRequest(query="-only", mode=ai.SEARCH_MODE_RANKED), "BAD_QUERY", "query", None),
    (ai.SearchRequest(query="\t", mode=ai.SEARCH_MODE_RANKED), "EMPTY_QUERY", "query", {}),
    (ai.SearchRequest(query="x", limit=-1), "BAD_LIMIT", "limit", {}),
    (ai.SearchRequest(query="x", max_bytes=-1), "BAD_LIMIT", "max_bytes", {}),
    (ai.SearchRequest(query="x", roles=[1, 0]), "BAD_ENUM", "roles", {"value": "0"}),
    (ai.SearchRequest(query="x", roles=[4]), "BAD_ENUM", "roles", {"value": "4"}),
    (ai.SearchRequest(query="x", kinds=[0]), "BAD_ENUM", "kinds", {"value": "0"}),
    (ai.SearchRequest(query="x", kinds=[5]), "BAD_ENUM", "kinds", {"value": "5"}),
    (ai.SearchRequest(query="x", mode=3), "BAD_ENUM", "mode", {"value": "3"}),
    (ai.SearchRequest(query="x", since=LATE), "BAD_TIME", "since", {}),
    (ai.SearchRequest(query="x", page_token="x"), "BAD_PAGE_TOKEN", "page_token", {}),
    (
        ai.SearchRequest(query="x", since=Timestamp(seconds=6), until=Timestamp(seconds=5)),
        "BAD_COMBINATION",
        "since",
        {},
    ),
    (ai.UsageRequest(group_by=[0]), "BAD_ENUM", "group_by", {"value": "0"}),
    (ai.UsageRequest(group_by=[9]), "BAD_ENUM", "group_by", {"value": "9"}),
    (ai.UsageRequest(group_by=[1, 2, 1]), "BAD_ENUM", "group_by", {}),
    (ai.UsageRequest(time_zone="Mars/Olympus"), "BAD_TIME_ZONE", "time_zone", None),
    (ai.UsageRequest(limit=-1), "BAD_LIMIT", "limit", {}),
    (ai.UsageRequest(page_token="x"), "BAD_PAGE_TOKEN", "page_token", {}),
    (ai.UsageRequest(since=LATE), "BAD_TIME", "since", {}),
]
NOT_FOUND = [
    (st.GetSessionRequest(id="no"), "SESSION_NOT_FOUND"),
    (st.GetSessionRequest(id="a\0\n" * 999), "SESSION_NOT_FOUND"),
    (st.UpdateSessionRequest(id="no"), "SESSION_NOT_FOUND"),
    (st.DeleteSessionRequest(id="no"), "SESSION_NOT_FOUND"),
    (st.AppendMessageRequest(session_id="no", message=message()), "SESSION_NOT_FOUND"),
    (st.AppendMessagesRequest(session_id="no", messages=[message()]), "SESSION_NOT_FOUND"),
    (st.ListMessagesRequest(session_id="no"), "SESSION_NOT_FOUND"),
    (st.UpdateMemoryEntryRequest(id=77, pinned=True), "MEMORY_NOT_FOUND"),
    (st.DeleteMemoryEntryRequest(id=77), "MEMORY_NOT_FOUND"),
    (ai.ResolveRequest(tool="claude", id="no"), "TRANSCRIPT_NOT_FOUND"),
    (ai.ReadPageRequest(tool="codex", id=ID), "TRANSCRIPT_NOT_FOUND"),
    (ai.ReadTranscriptRequest(tool="claude", id="../../etc/passwd"), "TRANSCRIPT_NOT_FOUND"),
    (ai.ReadMessageRequest(tool="claude", id="no"), "TRANSCRIPT_NOT_FOUND"),
    (ai.ReadMessageRequest(**READ, index=5), "MESSAGE_NOT_FOUND"),
    (ai.ReadMessageRequest(**READ, offset=3), "MESSAGE_NOT_FOUND"),
]
GONE = [
    ai.ReadPageRequest(**READ, revision="another"),
    ai.ReadTranscriptRequest(**READ, revision="another"),
    ai.ReadMessageRequest(**READ, revision="another"),
]


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    """One product for all of these: nothing here changes it."""
    from tests.wire.conftest import Flue

    directory = tmp_path_factory.mktemp("f")
    flue = Flue(directory)
    homes.write_session(flue.home, 0)
    flue.start().swept()
    flue.store.CreateSession(st.CreateSessionRequest(id="s"))
    yield flue
    flue.stop()


def call(flue, request):
    """Send a request to its RPC; returns all responses."""
    name = type(request).__name__.removesuffix("Request")
    stub = flue.store if type(request).__module__.startswith("flue.store") else flue.index
    answer = getattr(stub, name)(request, timeout=30)
    return list(answer) if isinstance(answer, grpc.Call) else [answer]


def refusal(flue, request):
    with pytest.raises(grpc.RpcError) as caught:
        call(flue, request)
    error = caught.value
    rich = rpc_status.from_call(error)
    assert rich is not None, error
    found = {}
    for packed in rich.details:
        detail = getattr(error_details_pb2, packed.TypeName().rpartition(".")[2])()
        packed.Unpack(detail)
        found[type(detail).__name__] = detail
    return error.code(), found


@pytest.mark.parametrize(
    ("request_", "reason", "field", "metadata"),
    CASES,
    ids=[f"{type(case[0]).__name__}-{case[1]}-{n}" for n, case in enumerate(CASES)],
)
def test_bad_requests(product, request_, reason, field, metadata):
    code, details = refusal(product, request_)
    assert (code, details["ErrorInfo"].reason) == (INVALID, reason)
    assert details["ErrorInfo"].domain == "flue-grpc"
    if metadata is not None:
        assert dict(details["ErrorInfo"].metadata) == metadata
    if field is None:
        assert "BadRequest" not in details
    else:
        [violation] = details["BadRequest"].field_violations
        assert (violation.field, violation.reason) == (field, reason)
        top = violation.field.partition(".")[0]
        assert top in type(request_).DESCRIPTOR.fields_by_name


@pytest.mark.parametrize(
    ("request_", "reason"),
    NOT_FOUND,
    ids=[f"{type(case[0]).__name__}-{n}" for n, case in enumerate(NOT_FOUND)],
)
def test_what_is_not_there(product, request_, reason):
    code, details = refusal(product, request_)
    assert (code, details["ErrorInfo"].reason) == (grpc.StatusCode.NOT_FOUND, reason)


@pytest.mark.parametrize("request_", GONE, ids=lambda request: type(request).__name__)
def test_cursors_of_another_file(product, request_):
    code, details = refusal(product, request_)
    assert code is grpc.StatusCode.OUT_OF_RANGE
    assert details["ErrorInfo"].reason == "CURSOR_GONE"


def test_what_is_there_already(product):
    code, details = refusal(product, st.CreateSessionRequest(id="s"))
    assert code is grpc.StatusCode.ALREADY_EXISTS
    assert details["ErrorInfo"].reason == "SESSION_EXISTS"
    call(product, st.CreateSessionRequest(id="once", request_id="r1"))
    code, details = refusal(product, st.CreateSessionRequest(id="twice", request_id="r1"))
    assert code is grpc.StatusCode.ALREADY_EXISTS
    assert details["ErrorInfo"].reason == "REQUEST_ID_REUSED"


def test_values_at_their_limits_are_served(product):
    most = 1 << 31
    for request in (
        st.CreateSessionRequest(id="x" * 128, request_id="r" * 64),
        st.SearchMessagesRequest(query="x" * 8192, limit=most - 1, window=most - 1),
        st.RecentMemoryRequest(scopes=["a"], limit=most - 1),
        ai.SnapshotRequest(limit=most - 1, tools=["cursor"]),
        ai.SnapshotRequest(since=Timestamp(seconds=-62_135_596_800)),
        ai.SnapshotRequest(until=Timestamp(seconds=253_402_300_799, nanos=999_999_999)),
        ai.ReadPageRequest(**READ, offset=(1 << 63) - 1, limit=most - 1),
        ai.ReadTranscriptRequest(**READ, offset=(1 << 63) - 1, direction=2),
        ai.SearchRequest(query="x" * 8192, limit=most - 1, max_bytes=(1 << 63) - 1),
        ai.SearchRequest(query="x", roles=[1, 2, 3, 1], kinds=[1, 2, 3, 4, 4]),
        ai.UsageRequest(group_by=[1, 2, 3, 4, 5], time_zone="Asia/Kathmandu"),
        st.ListMessagesRequest(session_id="s", after_id=-(1 << 63)),
        st.ListMessagesRequest(session_id="s", after_id=(1 << 63) - 1),
    ):
        call(product, request)


def test_a_request_over_the_transport_limit_is_refused_without_details(product):
    request = st.AppendMessageRequest(session_id="s", message=message(content="x" * (34 << 20)))
    with pytest.raises(grpc.RpcError) as caught:
        call(product, request)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert rpc_status.from_call(caught.value) is None
    call(product, st.GetSessionRequest(id="s"))
