from __future__ import annotations

import threading

import grpc
import pytest

from flue_grpc.rpc import guard as guard_module
from flue_grpc.rpc.calls import Call, Kind, Method
from flue_grpc.rpc.guard import Guard, Watched, late, stalled
from flue_grpc.rpc.interceptors.deadlines import Deadlines, Patiences


class Clock:
    def __init__(self, monkeypatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(guard_module.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


class Context:
    def __init__(self, remaining=None) -> None:
        self.remaining = remaining
        self.callbacks = []

    def time_remaining(self):
        return self.remaining

    def add_callback(self, callback):
        self.callbacks.append(callback)
        return True


class Request:
    def __init__(self, follow=False) -> None:
        self.follow = follow


def call_of(kind, context, follow=False):
    method = Method("/s/M", kind, lambda raw: Request(follow), lambda response: b"")
    return Call(method, context, b"")


def test_a_call_ends_when_it_is_not_allowed_any_more_whatever_its_state(clock):
    for state in (None, stalled(60)):
        ends = []
        watched = Watched(lambda code, message, ends=ends: ends.append((code, message)))
        answers = iter([True, False])
        watched.only_while(lambda answers=answers: next(answers))
        watched.expect(state)
        watched.look(clock.now)
        assert ends == []
        watched.look(clock.now)
        assert ends == [(grpc.StatusCode.UNAUTHENTICATED, "the credentials hold no longer")]
        assert watched.ended_with is grpc.StatusCode.UNAUTHENTICATED
        watched.look(clock.now + 1000)
        assert len(ends) == 1


@pytest.mark.parametrize(
    ("kind", "asked"), [(Kind.UNARY, 0), (Kind.FINITE, 1), (Kind.LIVE, 1), (Kind.REFLECTION, 1)]
)
def test_streams_alone_are_asked_whether_they_are_still_allowed(clock, kind, asked):
    guard, questions = Guard(), []
    call = call_of(kind, Context(remaining=5))
    call.is_allowed = lambda: questions.append(kind) is None
    with Deadlines(guard, Patiences()).around(call):
        call.watched.look(clock.now)
    for callback in call.context.callbacks:
        callback()
    call.watched.look(clock.now)
    guard.close()
    assert len(questions) == asked


def test_a_state_ends_the_call_when_it_has_lasted_too_long(clock):
    ends = []
    watched = Watched(lambda code, message: ends.append((code, message)))
    watched.expect(stalled(60))
    watched.look(clock.now + 59.9)
    assert ends == []
    watched.look(clock.now + 60)
    assert ends == [(grpc.StatusCode.ABORTED, "the reader took nothing for too long")]
    assert watched.ended_with is grpc.StatusCode.ABORTED
    watched.look(clock.now + 1000)
    assert len(ends) == 1


def test_each_state_has_its_whole_time(clock):
    ends = []
    watched = Watched(lambda code, _: ends.append(code))
    for _ in range(100):
        watched.expect(late(60))
        clock.now += 59
        watched.look(clock.now)
        watched.expect(stalled(60))
        clock.now += 59
        watched.look(clock.now)
    watched.expect(None)
    watched.look(clock.now + 1e6)
    assert ends == []


@pytest.mark.parametrize(
    ("kind", "follow", "remaining", "seconds"),
    [
        (Kind.UNARY, False, 9.2e18, 60.0),
        (Kind.UNARY, False, None, 60.0),
        (Kind.UNARY, False, 5.0, None),
        (Kind.FINITE, False, 9.2e18, 61.0),
        (Kind.FINITE, False, 5.0, None),
        (Kind.FINITE, True, 9.2e18, None),
        (Kind.LIVE, False, 9.2e18, None),
        (Kind.REFLECTION, False, 9.2e18, 61.0),
    ],
)
def test_who_may_work_how_long_without_a_response(kind, follow, remaining, seconds):
    guard = Guard()
    call = call_of(kind, Context(remaining), follow)
    deadlines = Deadlines(guard, Patiences(unary=60.0, idle_stream=61.0, stalled_reader=62.0))
    with deadlines.around(call):
        state = call.watched._state
        assert (None if state is None else state[1].seconds) == seconds
        call.sending()
        assert call.watched._state[1].seconds == 62.0
        call.working()
        state = call.watched._state
        assert (None if state is None else state[1].seconds) == seconds
    assert call.watched._state[1].seconds == 62.0
    assert guard.watching == 1
    call.context.callbacks[0]()
    assert guard.watching == 0
    guard.close()


def test_a_call_that_fails_is_watched_no_longer():
    guard = Guard()
    call = call_of(Kind.UNARY, Context())
    with pytest.raises(KeyError), Deadlines(guard, Patiences()).around(call):
        raise KeyError
    assert guard.watching == 0
    guard.close()


def test_closing_ends_the_thread():
    guard = Guard(0.001)
    ended = threading.Event()
    watched = guard.watch(lambda *_: ended.set())
    watched.expect(late(0))
    assert ended.wait(20)
    guard.close()
    assert not guard._thread.is_alive()
    guard.close()
