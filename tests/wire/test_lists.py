"""Lists over the wire: concatenation, limits, tokens, resumption (contract rules 1 and 2)."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue.store.v1 import store_pb2 as st
from flue_grpc import limits
from tests.wire import homes

SESSIONS = 130
MESSAGES = 130


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    """One product with something in every list; each test leaves it as it was."""
    from tests.waiting import wait_until
    from tests.wire.conftest import Flue

    flue = Flue(tmp_path_factory.mktemp("f"))
    for number in range(SESSIONS):
        homes.write_session(flue.home, number)
    flue.start().swept()
    for number in range(SESSIONS):
        title = "subagent: x" if number % 10 == 0 else f"title {number}"
        flue.store.CreateSession(st.CreateSessionRequest(id=f"s{number:03}", title=title))
    messages = [
        st.Message(role="user", content=f"common word {number}", images=["i" * 50])
        for number in range(MESSAGES)
    ]
    flue.store.AppendMessages(st.AppendMessagesRequest(session_id="s001", messages=messages))
    for number in range(60):
        entry = st.WriteMemoryEntryRequest(
            scope="ab"[number % 2], content=f"common fact {number}", pinned=number % 7 == 0
        )
        flue.store.WriteMemoryEntry(entry)
    wait_until(lambda: is_ranked(flue))
    yield flue
    flue.stop()


def is_ranked(flue):
    """Whether the ranked index has caught up with the transcripts."""
    request = ai.SearchRequest(query="question", mode=ai.SEARCH_MODE_RANKED)
    return not any(response.building for response in flue.index.Search(request, timeout=30))


@dataclass(eq=False)
class List:
    """One list: its request, the field of its items and what tells two apart."""

    stub: str
    rpc: str
    request: Any
    field: str
    key: Any
    count: int

    def responses(self, flue, **changes):
        request = type(self.request)()
        request.CopyFrom(self.request)
        for name, value in changes.items():
            if isinstance(value, list):
                getattr(request, name).extend(value)
            else:
                setattr(request, name, value)
        return getattr(getattr(flue, self.stub), self.rpc)(request, timeout=30)

    def keys(self, response):
        return [self.key(item) for item in getattr(response, self.field)]

    def all(self, flue, **changes):
        return [key for response in self.responses(flue, **changes) for key in self.keys(response)]


def by_id(item):
    return item.id


LISTS = [
    List("store", "ListSessions", st.ListSessionsRequest(), "sessions", by_id, SESSIONS),
    List(
        "store",
        "ListSessions",
        st.ListSessionsRequest(exclude_subagents=True),
        "sessions",
        by_id,
        SESSIONS - 13,
    ),
    List(
        "store",
        "ListMessages",
        st.ListMessagesRequest(session_id="s001"),
        "messages",
        by_id,
        MESSAGES,
    ),
    List(
        "store",
        "SearchMessages",
        st.SearchMessagesRequest(query="common word", limit=1000),
        "results",
        lambda result: result.message.id,
        MESSAGES,
    ),
    List(
        "store",
        "RecentMemory",
        st.RecentMemoryRequest(scopes=["a", "b"], limit=1000),
        "entries",
        by_id,
        60,
    ),
    List("store", "ScopeMemory", st.ScopeMemoryRequest(scope="a"), "entries", by_id, 30),
    List(
        "store",
        "SearchMemory",
        st.SearchMemoryRequest(scopes=["a", "b"], query="fact", limit=1000),
        "entries",
        by_id,
        60,
    ),
    List("index", "Snapshot", ai.SnapshotRequest(), "summaries", by_id, SESSIONS),
    List(
        "index",
        "Search",
        ai.SearchRequest(query="question", limit=1000),
        "hits",
        lambda hit: (hit.id, hit.offset, hit.index),
        SESSIONS,
    ),
    List(
        "index",
        "Search",
        ai.SearchRequest(query="question", limit=1000, mode=ai.SEARCH_MODE_RANKED),
        "hits",
        lambda hit: (hit.id, hit.offset, hit.index),
        SESSIONS,
    ),
    List(
        "index",
        "Usage",
        ai.UsageRequest(group_by=[ai.GROUP_BY_SESSION]),
        "rows",
        lambda row: tuple(row.keys),
        SESSIONS,
    ),
]
EVERY_LIST = pytest.mark.parametrize(
    "which", LISTS, ids=[f"{each.rpc}-{number}" for number, each in enumerate(LISTS)]
)


@EVERY_LIST
def test_a_list_is_whole_and_only_its_last_response_has_no_token(product, which):
    found = list(which.responses(product))
    keys = [key for response in found for key in which.keys(response)]
    assert len(keys) == len(set(keys)) == which.count
    assert 0 < len(which.keys(found[0])) <= limits.BATCH_START_ITEMS
    assert [bool(response.next_page_token) for response in found] == [True] * (len(found) - 1) + [
        False
    ]
    assert len(found) < which.count / 5


@EVERY_LIST
@pytest.mark.parametrize("limit", [1, 7, 10, 33])
def test_calls_with_a_limit_concatenate_to_the_list(product, which, limit):
    whole = which.all(product)
    found, token, calls = [], "", 0
    while True:
        responses = list(which.responses(product, limit=limit, page_token=token))
        keys = [key for response in responses for key in which.keys(response)]
        found += keys
        calls += 1
        token = responses[-1].next_page_token
        assert len(keys) == limit or not token
        if not token:
            break
    assert found == whole
    assert calls == -(-len(whole) // limit)


@EVERY_LIST
def test_a_stream_that_breaks_goes_on_from_any_response(product, which):
    whole = which.all(product)
    responses = list(which.responses(product))
    seen = []
    for response in responses[:-1]:
        seen += which.keys(response)
        assert seen + which.all(product, page_token=response.next_page_token) == whole


@EVERY_LIST
def test_tokens_stay_valid_across_a_restart(product, which):
    whole = which.all(product)
    first = next(iter(which.responses(product)))
    product.restart().swept()
    assert which.keys(first) + which.all(product, page_token=first.next_page_token) == whole


def reason(call):
    with pytest.raises(grpc.RpcError) as caught:
        list(call)
    info = error_details_pb2.ErrorInfo()
    rpc_status.from_call(caught.value).details[0].Unpack(info)
    return info.reason


@EVERY_LIST
def test_a_damaged_token_is_refused(product, which):
    token = next(iter(which.responses(product))).next_page_token
    for at in range(0, len(token), 5):
        other = "A" if token[at] != "A" else "B"
        damaged = token[:at] + other + token[at + 1 :]
        assert reason(which.responses(product, page_token=damaged)) == "BAD_PAGE_TOKEN"
    for foreign in (token + "A", token[:-1], token[1:], "x", "====", "\U0001f600", token * 100):
        assert reason(which.responses(product, page_token=foreign)) == "BAD_PAGE_TOKEN"


@EVERY_LIST
def test_a_token_of_another_list_is_refused(product, which):
    token = next(iter(which.responses(product))).next_page_token
    for other in LISTS:
        if other is not which:
            assert reason(other.responses(product, page_token=token)) == "BAD_PAGE_TOKEN"


@EVERY_LIST
def test_a_token_says_nothing_of_places_on_the_disk(product, which):
    token = next(iter(which.responses(product))).next_page_token
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    for secret in (b".claude", b"/srv", b".jsonl", str(product.data).encode()):
        assert secret not in raw


@pytest.mark.parametrize(
    ("which", "change"),
    [
        (LISTS[0], {"exclude_subagents": True}),
        (LISTS[2], {"after_id": 1}),
        (LISTS[2], {"omit_images": True}),
        (LISTS[3], {"scope": st.SEARCH_SCOPE_ALL}),
        (LISTS[3], {"window": 3}),
        (LISTS[3], {"include_images": True}),
        (LISTS[5], {"scope": "b"}),
        (LISTS[7], {"include_subagents": True}),
        (LISTS[7], {"cwd": "/srv/work"}),
        (LISTS[8], {"query": "questio"}),
        (LISTS[8], {"include_subagents": True}),
        (LISTS[8], {"mode": ai.SEARCH_MODE_SUBSTRING}),
        (LISTS[9], {"tools": ["claude"]}),
        (LISTS[10], {"time_zone": "UTC"}),
    ],
)
def test_a_token_is_bound_to_the_other_fields_of_its_request(product, which, change):
    token = next(iter(which.responses(product))).next_page_token
    assert reason(which.responses(product, page_token=token, **change)) == "BAD_PAGE_TOKEN"


@EVERY_LIST
def test_the_limit_may_change_between_calls(product, which):
    whole = which.all(product)
    first = list(which.responses(product, limit=4))[-1]
    rest = which.all(product, limit=5, page_token=first.next_page_token)
    assert rest == whole[4:9]


@pytest.mark.parametrize(
    ("stub", "rpc", "request_"),
    [
        ("store", "SearchMessages", st.SearchMessagesRequest(query="nothing-like-it")),
        ("store", "RecentMemory", st.RecentMemoryRequest()),
        ("store", "ScopeMemory", st.ScopeMemoryRequest()),
        ("store", "ListMessages", st.ListMessagesRequest(session_id="s002")),
        ("index", "Snapshot", ai.SnapshotRequest(tools=["cursor"])),
        ("index", "Search", ai.SearchRequest(query="nothing-like-it")),
        ("index", "Usage", ai.UsageRequest(tools=["cursor"], group_by=[ai.GROUP_BY_TOOL])),
    ],
)
def test_an_empty_list_is_one_empty_response(product, stub, rpc, request_):
    found = list(getattr(getattr(product, stub), rpc)(request_, timeout=30))
    assert len(found) == 1
    assert found[0].next_page_token == ""


@pytest.mark.parametrize(
    ("which", "default"),
    [(LISTS[3], 10), (LISTS[4], 8), (LISTS[6], 10), (LISTS[8], 50), (LISTS[9], 50)],
    ids=str,
)
def test_defaults_of_limits(product, which, default):
    assert len(which.all(product, limit=0)) == default


def test_snapshot_says_whether_it_is_complete_on_every_response(product):
    found = list(LISTS[7].responses(product))
    assert len({response.building for response in found}) == 1
    assert [response.hidden_subagents for response in found] == [0] * len(found)


def test_messages_come_back_as_they_were_given(product):
    given = st.Message(
        role="assistant",
        content="nul \0 é \U0001f600",
        provider="p",
        tool_calls=[
            st.ToolCall(
                id="c",
                type="function",
                function=st.ToolCallFunction(name="f", arguments='{"a" : 1.50}'),
                extra={"signature": '"x"', "function.more": "[1]"},
            )
        ],
        tool_call_id="t",
        name="n",
        images=["data:a", ""],
    )
    product.store.CreateSession(st.CreateSessionRequest(id="whole"))
    answer = product.store.AppendMessage(
        st.AppendMessageRequest(session_id="whole", message=given)
    ).message
    request = st.ListMessagesRequest(session_id="whole")
    [response] = product.store.ListMessages(request)
    assert response.messages[0] == answer
    assert answer.id > 0
    assert answer.session_id == "whole"
    assert answer.created_at.ToMicroseconds() > 0
    for field in ("id", "session_id", "created_at"):
        answer.ClearField(field)
    assert answer == given
    request.omit_images = True
    [response] = product.store.ListMessages(request)
    assert list(response.messages[0].images) == ["", ""]
    product.store.DeleteSession(st.DeleteSessionRequest(id="whole"))
