"""How long the Python client goes on trying, and whom it tells."""

from __future__ import annotations

import math
import threading
from contextlib import ExitStack

import grpc
import pytest
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from flue.store.v1 import store_pb2 as st
from flue_grpc.client import CallError, Client, RetryPolicy, Target
from flue_grpc.client.retry import Backoff
from tests.clients.scripted import BROKEN, Script, pack, page, playing, transcript

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


@pytest.mark.parametrize("end", ["stream", "client"])
def test_closing_ends_the_wait_for_another_attempt(opened, script, end):
    """The wait is an hour long: only its interruption lets the test end."""
    script.answers = [[page([1], "t1"), BROKEN]]
    waits = threading.Event()
    patient = RetryPolicy(first_wait=3600.0, longest_wait=3600.0)
    client = opened(retry=patient, on_break=lambda error: waits.set())
    messages = client.store.list_messages("ses_1")
    seen, failures = [], []

    def read():
        try:
            seen.extend(m.id for m in messages)
        except CallError as error:
            failures.append(error.code)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    assert waits.wait(20)
    {"stream": messages, "client": client}[end].close()
    reader.join(20)
    assert not reader.is_alive()
    assert seen == [1]
    assert failures == ([] if end == "stream" else [grpc.StatusCode.UNAVAILABLE])
    assert len(script.requests) == 1


def test_closing_a_client_ends_the_wait_of_a_unary_call(opened, script, monkeypatch):
    script.answers = [[BROKEN]]
    waits, pause_after = threading.Event(), Backoff.pause_after

    def pause(backoff, error):
        waits.set()
        return pause_after(backoff, error)

    monkeypatch.setattr(Backoff, "pause_after", pause)
    client = opened(retry=RetryPolicy(first_wait=3600.0, longest_wait=3600.0), timeout=math.inf)
    failures = []

    def call():
        try:
            client.store.get_session("ses_1")
        except CallError as error:
            failures.append(error.code)

    caller = threading.Thread(target=call, daemon=True)
    caller.start()
    assert waits.wait(20)
    client.close()
    caller.join(20)
    assert failures == [grpc.StatusCode.UNAVAILABLE]


CALLS = {
    "unary": lambda client: client.store.get_session("ses_1"),
    "write": lambda client: client.store.append_message("ses_1", st.Message(role="user")),
    "list": lambda client: list(client.agentindex.snapshot()),
    "health": lambda client: client.is_serving(),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_after_close_is_a_call_error(opened, script, name):
    client = opened()
    client.close()
    with pytest.raises(CallError, match="the client is closed") as failure:
        CALLS[name](client)
    assert failure.value.code is grpc.StatusCode.CANCELLED
    assert script.requests == []


@pytest.mark.parametrize("timeout", [math.inf, 1e18])
def test_a_timeout_longer_than_grpc_can_say_is_none(opened, script, timeout):
    script.answers = [[page([1])], [st.GetSessionResponse(session=st.Session(title="t"))]]
    client = opened(timeout=timeout)
    assert [m.id for m in client.store.list_messages("ses_1", timeout=timeout)] == [1]
    assert client.store.get_session("ses_1").title == "t"


def test_a_limit_beyond_what_a_call_can_say_is_asked_in_parts(opened, script):
    script.answers = [[page([1, 2], "t2"), BROKEN], [page([3])]]
    assert [m.id for m in opened().store.list_messages("ses_1", limit=2**40)] == [1, 2, 3]
    assert [r.limit for r in script.requests] == [2**31 - 1, 2**31 - 1]


def test_what_no_request_can_hold_is_a_value_error(opened, script):
    index = opened().agentindex
    with pytest.raises(ValueError, match="out of range"):
        index.read_page("pi", "s", offset=2**70)
    with pytest.raises(ValueError, match="surrogates not allowed"):
        index.resolve("pi", "\ud800")
    with pytest.raises(ValueError, match="out of range"):
        index.read_transcript("pi", "s", limit=2**40)
    assert script.requests == []


@pytest.mark.parametrize(
    "details",
    [
        b"\xff\xff",
        Status(details=[Any(type_url="x/google.rpc.ErrorInfo", value=b"\xff")]).SerializeToString(),
        Status(details=[pack(RetryInfo(retry_delay=Duration(seconds=2**62)))]).SerializeToString(),
    ],
)
def test_details_that_cannot_be_read_leave_the_code(opened, script, details):
    script.answers = [[(grpc.StatusCode.INTERNAL, details)]]
    with pytest.raises(CallError) as failure:
        opened().store.get_session("ses_1")
    assert (failure.value.code, failure.value.reason) == (grpc.StatusCode.INTERNAL, "")
