"""How long the Python client goes on trying, and whom it tells."""

from __future__ import annotations

import math
import threading
from contextlib import ExitStack

import grpc
import pytest

from flue.store.v1 import store_pb2 as st
from flue_grpc.client import CallError, Client, RetryPolicy, Target
from tests.clients.scripted import BROKEN, Script, page, playing, transcript

QUICK = RetryPolicy(attempts=4, first_wait=0.001, longest_wait=0.002)
FOREVER = RetryPolicy(attempts=2, first_wait=0.001, longest_wait=0.002, patience=math.inf)

CANCELLED = (grpc.StatusCode.CANCELLED, "")


def test_a_stream_that_a_stopping_server_cancels_goes_on(opened, script):
    script.answers = [[page([1], "t1"), CANCELLED], [CANCELLED], [page([2])]]
    assert [m.id for m in opened().store.list_messages("ses_1")] == [1, 2]
    assert [r.page_token for r in script.requests] == ["", "t1", "t1"]


def test_a_read_that_a_stopping_server_cancels_is_repeated(opened, script):
    script.answers = [[CANCELLED], [st.GetSessionResponse(session=st.Session(title="t"))]]
    assert opened().store.get_session("ses_1").title == "t"


@pytest.fixture
def script(tmp_path):
    script = Script()
    with playing(script, f"unix:{tmp_path}/s"):
        yield script


@pytest.fixture
def opened(script, tmp_path):
    """Open a client of the server that plays the script."""

    with ExitStack() as stack:

        def open_client(retry=QUICK, **settings):
            target = Target(address=f"unix:{tmp_path}/s")
            return stack.enter_context(Client(target, retry=retry, **settings))

        yield open_client


def test_a_live_stream_that_has_begun_goes_by_time_and_says_so(opened, script):
    broken = [[BROKEN] for _ in range(9)]
    script.answers = [[page([1], "t1"), BROKEN], *broken, [page([2], "t2"), BROKEN], [page([3])]]
    told = []
    with opened(retry=FOREVER, on_break=told.append) as client:
        ids = [m.id for m in client.store.list_messages("ses_1", follow=True)]
    assert ids == [1, 2, 3]
    assert [error.code if error else None for error in told] == [
        grpc.StatusCode.UNAVAILABLE, None, grpc.StatusCode.UNAVAILABLE, None,
    ]  # fmt: skip


@pytest.mark.parametrize("follow", [True, False])
def test_a_stream_that_never_began_or_has_an_end_goes_by_attempts(opened, script, follow):
    script.answers = [[BROKEN] if follow else [page([1], "t1"), BROKEN], [BROKEN]]
    told = []
    with opened(retry=FOREVER, on_break=told.append) as client, pytest.raises(CallError):
        list(client.store.list_messages("ses_1", follow=follow))
    assert len(script.requests) == 2
    assert len(told) == 1


def test_patience_ends(opened, script):
    script.answers = [[page([1], "t1"), BROKEN], [BROKEN]]
    policy = RetryPolicy(first_wait=0.001, patience=0.0)
    with opened(retry=policy) as client, pytest.raises(CallError):
        list(client.store.list_messages("ses_1", follow=True))
    assert len(script.requests) == 1


def test_a_follow_waits_for_a_server_that_still_reads_transcripts(opened, script):
    unknown = (grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND")
    script.answers = [
        [transcript(0, [0], 90), BROKEN],
        [(*unknown, "building")],
        [transcript(90, [90], 120), unknown],
    ]
    seen = []
    with pytest.raises(CallError, match="SESSION_NOT_FOUND"):
        seen.extend(m.offset for m in opened().agentindex.read_transcript("pi", "s", follow=True))
    assert (seen, len(script.requests)) == ([0, 90], 3)


def test_a_closed_client_tries_nothing_again(opened, script):
    script.answers = [[page([1], "t1"), "wait"]]
    client = opened(retry=FOREVER)
    messages = iter(client.store.list_messages("ses_1", follow=True))
    assert next(messages).id == 1
    threading.Thread(target=client.close).start()
    with pytest.raises(CallError) as failure:
        next(messages)
    assert failure.value.code is grpc.StatusCode.CANCELLED
    assert len(script.requests) == 1
