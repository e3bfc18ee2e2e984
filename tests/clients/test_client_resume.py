"""What the Python client does when calls fail, against a server that fails on purpose."""

from __future__ import annotations

import threading

import grpc
import pytest

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue.store.v1 import store_pb2 as st
from flue_grpc.client import CallError, Client, RetryPolicy, Target
from tests.clients.scripted import BROKEN, Script, page, playing, transcript

QUICK = RetryPolicy(attempts=4, first_wait=0.001, longest_wait=0.002)


@pytest.fixture
def script(tmp_path):
    script = Script()
    with playing(script, f"unix:{tmp_path}/s"):
        yield script


@pytest.fixture
def client(script, tmp_path):
    with Client(Target(address=f"unix:{tmp_path}/s", token="secret-token"), retry=QUICK) as client:
        yield client


def test_a_broken_list_goes_on_from_the_last_token(client, script):
    script.answers = [
        [page([1, 2], "t2"), BROKEN],
        [BROKEN],
        [page([3], "t3"), (grpc.StatusCode.ABORTED, "")],
        [page([4])],
    ]
    messages = client.store.list_messages("ses_1", after_id=7)
    assert [m.id for m in messages] == [1, 2, 3, 4]
    assert [r.page_token for r in script.requests] == ["", "t2", "t2", "t3"]
    assert {r.after_id for r in script.requests} == {7}


def test_a_limit_counts_over_all_calls(client, script):
    script.answers = [[page([1, 2], "t2"), BROKEN], [page([3, 4, 5], "t5")]]
    messages = client.store.list_messages("ses_1", limit=5)
    assert [m.id for m in messages] == [1, 2, 3, 4, 5]
    assert [r.limit for r in script.requests] == [5, 3]
    assert messages.last.next_page_token == "t5"


def test_a_search_for_more_than_one_call_brings_makes_several(client, script):
    def results(count, token=""):
        results = [ai.Hit(id=str(i)) for i in range(count)]
        return ai.SearchResponse(hits=results, next_page_token=token)

    script.answers = [[results(1000, "a")], [results(0, "b")], [results(7)]]
    assert len(list(client.agentindex.search("x", limit=1500))) == 1007
    assert [(r.limit, r.page_token) for r in script.requests] == [
        (1000, ""), (500, "a"), (500, "b"),
    ]  # fmt: skip


def test_a_search_with_a_byte_budget_is_one_call(client, script):
    script.answers = [[ai.SearchResponse(truncated=True, next_page_token="a")]]
    search = client.agentindex.search("x", max_bytes=10)
    assert list(search) == []
    assert (search.last.truncated, search.last.next_page_token) == (True, "a")
    assert len(script.requests) == 1


LISTS = {
    "list_sessions": lambda c, n: c.store.list_sessions(limit=n),
    "list_messages": lambda c, n: c.store.list_messages("ses_1", limit=n),
    "search_messages": lambda c, n: c.store.search_messages("x", limit=n),
    "recent_memory": lambda c, n: c.store.recent_memory(["s"], limit=n),
    "scope_memory": lambda c, n: c.store.scope_memory("s", limit=n),
    "search_memory": lambda c, n: c.store.search_memory(["s"], "x", limit=n),
    "snapshot": lambda c, n: c.agentindex.snapshot(limit=n),
    "search": lambda c, n: c.agentindex.search("x", limit=n),
    "usage": lambda c, n: c.agentindex.usage(limit=n),
}
RESPONSES = {
    "list_sessions": (st.ListSessionsResponse, "sessions", st.Session),
    "list_messages": (st.ListMessagesResponse, "messages", st.Message),
    "search_messages": (st.SearchMessagesResponse, "results", st.SearchResult),
    "recent_memory": (st.RecentMemoryResponse, "entries", st.MemoryEntry),
    "scope_memory": (st.ScopeMemoryResponse, "entries", st.MemoryEntry),
    "search_memory": (st.SearchMemoryResponse, "entries", st.MemoryEntry),
    "snapshot": (ai.SnapshotResponse, "summaries", ai.Summary),
    "search": (ai.SearchResponse, "hits", ai.Hit),
    "usage": (ai.UsageResponse, "rows", ai.UsageRow),
}


def response_of(name, count, token):
    response, field, item = RESPONSES[name]
    return response(**{field: [item() for _ in range(count)], "next_page_token": token})


@pytest.mark.parametrize("name", LISTS)
def test_a_break_after_the_last_response_is_the_end(client, script, name):
    """The trailers are lost: nothing is left of the list, or of what was wanted of it."""
    script.answers = [
        [response_of(name, 2, "t2"), BROKEN],
        [response_of(name, 1, ""), BROKEN],
        [response_of(name, 2, "t2"), response_of(name, 1, "t3"), BROKEN],
    ]
    assert len(list(LISTS[name](client, None))) == 3
    assert [r.page_token for r in script.requests] == ["", "t2"]
    assert len(list(LISTS[name](client, 3))) == 3
    assert len(script.requests) == 3


@pytest.mark.parametrize("name", LISTS)
def test_a_break_before_the_first_response_begins_anew(client, script, name):
    script.answers = [[BROKEN], [response_of(name, 0, ""), BROKEN]]
    assert list(LISTS[name](client, None)) == []
    assert [r.page_token for r in script.requests] == ["", ""]


def test_a_limit_of_nothing_is_none(client, script):
    script.answers = [[page([1], "t1"), BROKEN], [page([2], "t2")], [page([3])]]
    assert [m.id for m in client.store.list_messages("ses_1", limit=0)] == [1, 2, 3]
    assert [r.limit for r in script.requests] == [0, 0, 0]


def test_a_follow_that_has_its_limit_is_at_its_end_when_it_breaks(client, script):
    script.answers = [
        [page([1, 2], "t2"), BROKEN],
        [transcript(0, [0, 40], 90), BROKEN],
        [page([1], "t1"), BROKEN], [page([2], "t2")],
    ]  # fmt: skip
    messages = client.store.list_messages("ses_1", follow=True, limit=2)
    assert [m.id for m in messages] == [1, 2]
    messages = client.agentindex.read_transcript("pi", "s", follow=True, limit=2)
    assert [m.offset for m in messages] == [0, 40]
    messages = client.store.list_messages("ses_1", follow=True, limit=2)
    assert [m.id for m in messages] == [1, 2]
    assert len(script.requests) == 4


def test_a_byte_budget_that_is_used_up_is_not_given_again(client, script):
    script.answers = [
        [ai.SearchResponse(hits=[ai.Hit(id="1")], next_page_token="a"), BROKEN],
        [ai.SearchResponse(hits=[ai.Hit(id="2")], next_page_token="b", truncated=True), BROKEN],
    ]
    search = client.agentindex.search("x", max_bytes=10)
    assert [hit.id for hit in search] == ["1", "2"]
    assert search.last.next_page_token == "b"
    assert [r.page_token for r in script.requests] == ["", "a"]


def test_a_transcript_that_was_read_to_its_end_is_not_read_on(client, script):
    whole = transcript(0, [0, 40], 90)
    whole.page.eof = True
    script.answers = [
        [whole, BROKEN],
        [transcript(0, [0, 40], 90), BROKEN],
        [transcript(0, [0, 0, 0], 90), BROKEN],
        [transcript(90, [90], 130), transcript(0, [0, 40], 90), BROKEN],
        [whole, BROKEN], [transcript(90, [90], 130), (grpc.StatusCode.NOT_FOUND, "GONE")],
    ]  # fmt: skip
    read = client.agentindex.read_transcript
    assert [m.offset for m in read("pi", "s")] == [0, 40]
    assert [m.offset for m in read("pi", "s", limit=2)] == [0, 40]
    assert [m.offset for m in read("pi", "s", limit=2)] == [0, 0, 0]
    backward = read("pi", "s", direction=ai.DIRECTION_BACKWARD)
    assert [m.offset for m in backward] == [90, 0, 40]
    assert len(script.requests) == 4
    seen = []
    with pytest.raises(CallError, match="GONE"):
        seen.extend(m.offset for m in read("pi", "s", follow=True))
    assert seen == [0, 40, 90]


def test_a_text_that_breaks_after_its_last_piece_is_whole(client, script):
    text = [ai.ReadMessageResponse(text="añ"), ai.ReadMessageResponse(text="b")]
    script.answers = [[*text, BROKEN], text]
    assert client.agentindex.read_message("pi", "s", 0, 0) == "añb"


def test_failures_without_progress_end_with_the_last_one(client, script):
    script.answers = [[page([1], "t1"), BROKEN], [BROKEN], [BROKEN], [BROKEN]]
    seen = []
    with pytest.raises(CallError) as failure:
        seen.extend(m.id for m in client.store.list_messages("ses_1"))
    assert failure.value.code is grpc.StatusCode.UNAVAILABLE
    assert [r.page_token for r in script.requests] == ["", "t1", "t1", "t1"]


def test_progress_forgives_earlier_failures(client, script):
    script.answers = [[page([i], f"t{i}"), BROKEN] for i in range(1, 10)] + [[page([10])]]
    assert [m.id for m in client.store.list_messages("ses_1")] == list(range(1, 11))


def test_an_error_with_a_reason_is_not_repeated(client, script):
    script.answers = [[page([1], "t1"), (grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND")]]
    with pytest.raises(CallError) as failure:
        list(client.store.list_messages("ses_1"))
    error = failure.value
    assert (error.code, error.reason) == (grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND")
    assert error.metadata == {"id": "ses_1"}
    assert str(error) == "SESSION_NOT_FOUND: refused"
    assert len(script.requests) == 1


def test_a_broken_transcript_goes_on_by_offset_and_revision(client, script):
    script.answers = [
        [transcript(0, [0, 40], 90), BROKEN],
        [transcript(90, [90, 95], 120), BROKEN],
        [transcript(120, [120], 130)],
    ]
    messages = client.agentindex.read_transcript("pi", "s", follow=True, limit=5)
    assert [m.offset for m in messages] == [0, 40, 90, 95, 120]
    assert [(r.offset, r.revision, r.limit) for r in script.requests] == [
        (0, "", 5), (90, "r1", 3), (120, "r1", 1),
    ]  # fmt: skip
    assert [r.HasField("offset") for r in script.requests] == [False, True, True]


def test_a_broken_backward_transcript_goes_on_before_its_start(client, script):
    script.answers = [[transcript(90, [90], 130), BROKEN], [transcript(0, [0, 40], 90)]]
    messages = client.agentindex.read_transcript("pi", "s", direction=ai.DIRECTION_BACKWARD)
    assert [m.offset for m in messages] == [90, 0, 40]
    assert [(r.offset, r.revision) for r in script.requests] == [(0, ""), (90, "r1")]


def test_a_broken_text_is_read_again_without_repeating_what_came(client, script):
    def text(piece):
        return ai.ReadMessageResponse(text=piece)

    script.answers = [[text("añ"), text("b"), BROKEN], [text("a"), text("ñbc"), text("d")]]
    assert client.agentindex.read_message("pi", "s", 0, 0) == "añbcd"


def changes(*events, caught_up=False):
    events = [
        ai.SessionEvent(type=kind, summary=ai.Summary(tool="pi", id=name, title=title))
        for kind, name, title in events
    ]
    return ai.WatchResponse(events=events, caught_up=caught_up)


def test_a_broken_watch_tells_only_what_changed_meanwhile(client, script):
    added, updated, removed = (
        ai.EVENT_TYPE_ADDED, ai.EVENT_TYPE_UPDATED, ai.EVENT_TYPE_REMOVED,
    )  # fmt: skip
    script.answers = [
        [
            changes((added, "a", "1"), (added, "b", "1"), (added, "c", "1")),
            changes(caught_up=True),
            changes((removed, "c", ""), caught_up=True),
            BROKEN,
        ],
        [
            changes((added, "b", "2"), (added, "d", "1")),
            changes(caught_up=True),
            changes((updated, "d", "2"), caught_up=True),
        ],
    ]
    watch = client.agentindex.watch()
    flags, events = [], []
    for response in watch.responses():
        flags.append(response.caught_up)
        events += [(e.type, e.summary.id, e.summary.title) for e in response.events]
    assert events == [
        (added, "a", "1"), (added, "b", "1"), (added, "c", "1"), (removed, "c", ""),
        (updated, "b", "2"), (added, "d", "1"), (removed, "a", ""), (updated, "d", "2"),
    ]  # fmt: skip
    assert flags == [False, True, True, True, True, True]


def test_closing_ends_iteration_at_once(client, script):
    script.answers = [[page([1], "t1"), "wait"]]
    with client.store.list_messages("ses_1", follow=True) as messages:
        for message in messages:
            assert message.id == 1
            threading.Thread(target=messages.close).start()
    assert script.ended.wait(30)
    assert len(script.requests) == 1


def test_leaving_a_loop_cancels_the_call(client, script):
    script.answers = [[page([1], "t1"), "wait"]]
    for message in client.store.list_messages("ses_1", follow=True):
        assert message.id == 1
        break
    assert script.ended.wait(30)


def test_a_deadline_covers_repeats(client, script):
    script.answers = [[BROKEN], ["wait"]]
    with pytest.raises(CallError) as failure:
        list(client.store.list_messages("ses_1", timeout=0.2))
    assert failure.value.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert len(script.requests) == 2


def test_a_write_is_repeated_under_one_request_id(client, script):
    script.answers = [[BROKEN], [st.AppendMessageResponse(message=st.Message(id=3))]]
    assert client.store.append_message("ses_1", st.Message(role="user")).id == 3
    first, second = script.requests
    assert first == second
    assert len(first.request_id) == 32


def test_a_given_request_id_is_sent(client, script):
    script.answers = [[st.CreateSessionResponse(session=st.Session(id="x"))]]
    assert client.store.create_session("x", request_id="mine").id == "x"
    assert script.requests[0].request_id == "mine"


def test_a_write_without_request_id_is_not_repeated_when_it_may_be_done(client, script):
    script.answers = [[BROKEN]]
    with pytest.raises(CallError):
        client.store.update_session("ses_1", "t")
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "BUSY"),
        (grpc.StatusCode.UNAVAILABLE, "DRAINING"),
        (grpc.StatusCode.UNAVAILABLE, "DATABASE_BUSY"),
        (grpc.StatusCode.UNAVAILABLE, "DATABASE_IO_ERROR"),
    ],
)
def test_a_refused_write_is_repeated(client, script, code, reason):
    script.answers = [[(code, reason)], [st.UpdateSessionResponse(session=st.Session(title="t"))]]
    assert client.store.update_session("ses_1", "t").title == "t"
    assert len(script.requests) == 2


def test_disk_full_is_not_repeated(client, script):
    script.answers = [[(grpc.StatusCode.RESOURCE_EXHAUSTED, "DISK_FULL")]]
    with pytest.raises(CallError) as failure:
        client.store.append_message("ses_1", st.Message(role="user"))
    assert failure.value.reason == "DISK_FULL"
    assert failure.value.retry_after == 0.001
    assert len(script.requests) == 1
