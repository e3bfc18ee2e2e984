"""Search over the wire: its flags, its byte budget and how it ends early."""

from __future__ import annotations

import threading

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue_grpc.agentindex.transcript_file import TranscriptFile
from tests.wire import homes

SESSIONS = 40


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    from tests.wire.conftest import Flue

    flue = Flue(tmp_path_factory.mktemp("f"))
    for number in range(SESSIONS):
        filler = [homes.user_line(number, "filler " * 500, second) for second in range(2, 20)]
        lines = [
            *filler,
            homes.user_line(number, f"needle {number} here", 30),
            homes.reply_line(number, "no match", 31),
        ]
        homes.write_session(flue.home, number, lines)
    flue.start().swept()
    yield flue
    flue.stop()


def search(flue, **fields):
    return list(flue.index.Search(ai.SearchRequest(query="NEEDLE", **fields), timeout=30))


def hits(responses):
    return [hit.id for response in responses for hit in response.hits]


def newest_first():
    numbers = sorted(range(SESSIONS), key=lambda number: (-(number % 28), homes.session_id(number)))
    return [homes.session_id(number) for number in numbers]


def test_hits_come_newest_session_first_and_say_where_they_are(product):
    found = search(product)
    assert hits(found) == newest_first()
    hit = found[0].hits[0]
    assert (hit.tool, hit.cwd, hit.role, hit.kind) == (
        "claude",
        "/srv/work",
        ai.ROLE_USER,
        ai.KIND_TEXT,
    )
    [[start, end]] = [[each.start, each.end] for each in hit.ranges]
    assert hit.snippet.encode()[start:end] == b"needle"
    assert hit.text_offset == 0
    assert not hit.HasField("score")
    page = product.index.ReadPage(
        ai.ReadPageRequest(tool=hit.tool, id=hit.id, offset=hit.offset, limit=1)
    ).page
    assert page.messages[hit.index].text.startswith("needle")


def test_it_says_how_much_it_read_and_that_nothing_is_left(product):
    found = search(product)
    size = sum(path.stat().st_size for path in product.home.glob(".claude/projects/*/*"))
    assert found[-1].bytes_scanned == size
    scanned = [response.bytes_scanned for response in found]
    assert scanned == sorted(scanned)
    assert [response.truncated for response in found] == [False] * len(found)
    assert found[-1].next_page_token == ""


def test_a_limit_truncates_only_when_more_is_there(product):
    found = search(product, limit=SESSIONS - 1)
    assert len(hits(found)) == SESSIONS - 1
    assert [response.truncated for response in found] == [False] * (len(found) - 1) + [True]
    found = search(product, limit=SESSIONS)
    assert len(hits(found)) == SESSIONS
    assert not found[-1].truncated


@pytest.mark.parametrize("max_bytes", [1, 100_000, 500_000])
def test_a_byte_budget_ends_the_call_and_the_token_goes_on(product, max_bytes):
    found, token, calls = [], "", 0
    while True:
        responses = search(product, max_bytes=max_bytes, page_token=token)
        found += hits(responses)
        calls += 1
        token = responses[-1].next_page_token
        assert responses[-1].truncated == bool(token)
        assert responses[-1].bytes_scanned < max_bytes + 2_000_000
        if not token:
            break
        assert responses[-1].bytes_scanned >= max_bytes
    assert found == newest_first()
    assert calls > 1


def test_filters(product):
    def count(**fields):
        return len(hits(search(product, **fields)))

    assert count(tools=["claude"]) == SESSIONS
    assert count(tools=["codex", "cursor"]) == 0
    assert count(cwd="/srv/work") == SESSIONS
    assert count(cwd="/srv") == 0
    assert count(roles=[ai.ROLE_USER]) == SESSIONS
    assert count(roles=[ai.ROLE_ASSISTANT, ai.ROLE_SYSTEM]) == 0
    assert count(kinds=[ai.KIND_TEXT]) == SESSIONS
    assert count(kinds=[ai.KIND_TOOL_CALL]) == 0


def test_ranked_that_is_switched_off_says_so(make_flue):
    flue = make_flue(ranked_index=False).start()
    request = ai.SearchRequest(query="x", mode=ai.SEARCH_MODE_RANKED)
    with pytest.raises(grpc.RpcError) as caught:
        list(flue.index.Search(request))
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    info = error_details_pb2.ErrorInfo()
    rpc_status.from_call(caught.value).details[0].Unpack(info)
    assert info.reason == "RANKED_DISABLED"
    assert dict(info.metadata) == {"setting": "ranked_index"}


def test_a_search_that_nobody_waits_for_stops_reading(make_flue, monkeypatch, wait_until):
    """Counts what is read: the client leaves while the first file is being read."""
    flue = make_flue()
    for number in range(30):
        lines = [homes.user_line(number, "y" * 100_000, second) for second in range(30)]
        homes.write_session(flue.home, number, lines)
    flue.start().swept()
    reads = []
    reading = threading.Event()
    read = TranscriptFile._pread

    def slow(file, offset, size):
        reads.append(offset)
        reading.set()
        wait_until(file._cancel.is_cancelled)
        return read(file, offset, size)

    monkeypatch.setattr(TranscriptFile, "_pread", slow)
    budget = flue.server.services.runtime.budgets.by_kind["finite"]
    call = flue.index.Search(ai.SearchRequest(query="needle"))
    assert reading.wait(20)
    assert budget.used == 1
    call.cancel()
    wait_until(lambda: budget.used == 0)
    assert len(reads) == 1
