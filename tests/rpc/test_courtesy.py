"""What giving way does, and what it must not cost (contract rules 1, 4 and 5)."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from itertools import count

import pytest

from flue.store.v1 import store_pb2
from flue_grpc.rpc.calls import Call, ContextCancel, Kind, Method
from flue_grpc.rpc.interceptors.chain import request_to_stream
from flue_grpc.rpc.interceptors.courtesy import Courtesy

PATIENCE = 20.0


class Context:
    """A call's context whose client may go away."""

    def __init__(self):
        self.callbacks = []
        self.is_over = False

    def is_active(self):
        return not self.is_over

    def add_callback(self, callback):
        self.callbacks.append(callback)
        return not self.is_over

    def end(self):
        for callback in self.callbacks:
            callback()


class Machine:
    """Clocks that go on only as a test says, and the rests that were taken."""

    def __init__(self):
        self.now = 100.0
        self.used = 0.0
        self.rests = []
        self.courtesy = Courtesy(lambda: self.now, self._wait, lambda: self.used)

    def _wait(self, over, seconds):
        if over.is_set():
            return True
        self.rests.append(seconds)
        self.now += seconds
        return False

    def unary(self):
        with self.courtesy.around(call(Kind.UNARY)):
            pass


def call(kind, *, follow=False, context=None):
    method = Method("/s/M", kind, store_pb2.ListMessagesRequest.FromString, bytes)
    request = store_pb2.ListMessagesRequest(follow=follow)
    return Call(method, context or Context(), request.SerializeToString())


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
def entered(machine):
    with ExitStack() as stack:

        def enter(kind=Kind.FINITE, **fields):
            made = call(kind, **fields)
            stack.enter_context(machine.courtesy.around(made))
            return made

        yield enter


@pytest.fixture
def stream(entered):
    """One of two streams."""
    entered()
    return entered()


def test_nothing_rests_while_no_unary_call_comes(machine, stream):
    machine.used += 1.0
    stream.give_way()
    assert machine.rests == []


def test_a_stream_that_is_alone_never_rests(machine, entered):
    stream = entered()
    machine.unary()
    machine.used += 1.0
    stream.give_way()
    assert machine.rests == []


def test_a_rest_is_three_times_the_work_for_each_stream(machine, stream, entered):
    machine.unary()
    machine.used += 0.002
    stream.give_way()
    entered()
    machine.unary()
    machine.used += 0.004
    stream.give_way()
    assert machine.rests == pytest.approx([0.012, 0.036])


def test_streams_that_have_ended_count_no_more(machine, entered):
    stream = entered()
    with machine.courtesy.around(call(Kind.FINITE)):
        pass
    machine.unary()
    machine.used += 0.002
    stream.give_way()
    assert machine.rests == []


def test_little_work_adds_up_before_it_is_worth_a_rest(machine, stream):
    machine.unary()
    for _ in range(4):
        machine.used += 0.0001
        stream.give_way()
    assert machine.rests == pytest.approx([0.0018])


def test_a_rest_ends_when_the_calls_stop_coming(machine, stream):
    machine.unary()
    machine.used += 2.0
    stream.give_way()
    assert machine.rests == [0.05]
    machine.used += 2.0
    stream.give_way()
    assert machine.rests == [0.05]


def test_no_rest_is_longer_than_a_quarter_of_a_second(machine, stream, monkeypatch):
    monkeypatch.setattr("flue_grpc.limits.GIVE_WAY_SECONDS", 10.0)
    machine.unary()
    machine.used += 2.0
    stream.give_way()
    assert machine.rests == [0.25]


@pytest.mark.parametrize("kind", [Kind.HEALTH, Kind.REFLECTION, Kind.FINITE, Kind.LIVE])
def test_only_unary_calls_are_given_way(kind, machine, stream, entered):
    entered(kind)
    machine.used += 1.0
    stream.give_way()
    assert machine.rests == []


@pytest.mark.parametrize(("kind", "follow"), [(Kind.LIVE, False), (Kind.FINITE, True)])
def test_a_live_stream_gives_no_way(kind, follow, machine, entered):
    stream = entered(kind, follow=follow)
    entered()
    entered()
    machine.unary()
    machine.used += 1.0
    stream.give_way()
    assert machine.rests == []


def test_a_call_that_is_over_does_not_rest(machine, entered):
    context = Context()
    context.is_over = True
    stream = entered(context=context)
    entered()
    machine.unary()
    machine.used += 1.0
    stream.give_way()
    assert machine.rests == []


def test_a_call_that_ends_ends_its_rest_and_no_other():
    resting, ticks = threading.Semaphore(0), count()

    def wait(over, seconds):
        resting.release()
        return over.wait(PATIENCE)

    courtesy = Courtesy(lambda: 0.0, wait, lambda: next(ticks))
    contexts = [Context(), Context()]
    streams = [call(Kind.FINITE, context=context) for context in contexts]
    with ExitStack() as stack:
        for made in (*streams, call(Kind.UNARY)):
            stack.enter_context(courtesy.around(made))
        threads = [threading.Thread(target=stream.give_way) for stream in streams]
        for thread in threads:
            thread.start()
        for _ in threads:
            assert resting.acquire(timeout=PATIENCE)
        for context, thread in zip(reversed(contexts), reversed(threads), strict=True):
            assert thread.is_alive()
            context.end()
            thread.join(PATIENCE)
            assert not thread.is_alive()


def test_long_work_rests_before_any_response(machine, entered):
    context = Context()
    entered(context=context)
    entered()
    machine.unary()
    cancel = ContextCancel(context)
    machine.used += 0.0006
    cancel.check()
    assert machine.rests == []
    machine.used += 0.0006
    cancel.check()
    assert machine.rests == pytest.approx([0.0072])


@pytest.mark.parametrize("streams", [1, 2])
def test_work_without_others_or_unary_calls_does_not_rest(machine, entered, streams):
    context = Context()
    entered(context=context)
    if streams == 1:
        machine.unary()
    else:
        entered()
    machine.used += 1.0
    ContextCancel(context).check()
    assert machine.rests == []


def test_what_a_call_left_behind_knows_it_no_more(machine):
    context = Context()
    with machine.courtesy.around(call(Kind.FINITE, context=context)):
        assert hasattr(context, "pause")
    assert not hasattr(context, "pause")


def test_a_stream_gives_way_before_each_response_but_the_first():
    seen = []

    class Watching:
        def around(self, made):
            made.give_way = lambda: seen.append("rest")
            return ExitStack()

    def behaviour(request, context):
        yield from (b"a", b"b", b"c")

    method = Method("/s/M", Kind.FINITE, store_pb2.ListMessagesRequest.FromString, bytes)
    run = request_to_stream(method, behaviour, (Watching(),))
    seen.extend(run(b"", None))
    assert seen == [b"a", "rest", b"b", "rest", b"c"]
