from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest

from flue.store.v1 import store_pb2
from flue_grpc.rpc.calls import Call, Kind, Method
from flue_grpc.rpc.interceptors.chain import request_to_stream
from flue_grpc.rpc.interceptors.courtesy import Courtesy

PATIENCE = 20.0


class Machine:
    """Clocks that go on only as a test says, and the rests that were taken."""

    def __init__(self):
        self.now = 100.0
        self.used = 0.0
        self.rests = []
        self.courtesy = Courtesy(lambda: self.now, self.rests.append, lambda: self.used)

    def unary(self):
        with self.courtesy.around(call(Kind.UNARY)):
            pass


def call(kind, follow=False):
    method = Method("/s/M", kind, store_pb2.ListMessagesRequest.FromString, bytes)
    request = store_pb2.ListMessagesRequest(follow=follow)
    return Call(method, None, request.SerializeToString())


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
def entered(machine):
    with ExitStack() as stack:

        def enter(kind=Kind.FINITE, follow=False):
            made = call(kind, follow)
            stack.enter_context(machine.courtesy.around(made))
            return made

        yield enter


def test_nothing_rests_while_no_unary_call_comes(machine, entered):
    stream = entered()
    machine.used += 1.0
    stream.give_way()
    assert machine.rests == []


def test_a_stream_rests_three_times_as_long_as_it_worked(machine, entered):
    stream = entered()
    machine.unary()
    machine.used += 0.004
    stream.give_way()
    machine.used += 0.010
    stream.give_way()
    assert machine.rests == pytest.approx([0.012, 0.030])


def test_little_work_adds_up_before_it_is_worth_a_rest(machine, entered):
    stream = entered()
    machine.unary()
    for _ in range(4):
        machine.used += 0.0001
        stream.give_way()
    assert machine.rests == pytest.approx([0.0009])


def test_no_rest_is_longer_than_fifty_milliseconds(machine, entered):
    stream = entered()
    machine.unary()
    machine.used += 2.0
    stream.give_way()
    assert machine.rests == [0.05]


def test_fifty_milliseconds_after_the_last_call_streams_go_on(machine, entered):
    stream = entered()
    machine.unary()
    for later, count in ((0.049, 1), (0.002, 1)):
        machine.now += later
        machine.used += 0.001
        stream.give_way()
        assert len(machine.rests) == count


@pytest.mark.parametrize("kind", [Kind.HEALTH, Kind.REFLECTION, Kind.FINITE, Kind.LIVE])
def test_only_unary_calls_are_given_way(kind, machine, entered):
    stream = entered()
    entered(kind)
    machine.used += 1.0
    stream.give_way()
    assert machine.rests == []


@pytest.mark.parametrize(("kind", "follow"), [(Kind.LIVE, False), (Kind.FINITE, True)])
def test_a_live_stream_gives_no_way(kind, follow, machine, entered):
    stream = entered(kind, follow)
    machine.unary()
    machine.used += 1.0
    stream.give_way()
    assert machine.rests == []


def test_one_stream_rests_at_a_time():
    resting, go_on, most = threading.Semaphore(0), threading.Event(), []
    at_once = []

    def sleep(seconds):
        at_once.append(seconds)
        most.append(len(at_once))
        resting.release()
        assert go_on.wait(PATIENCE)
        at_once.pop()

    cpu = iter((0.0, 0.0, 1.0, 1.0, 1.0, 1.0))
    courtesy = Courtesy(lambda: 0.0, sleep, lambda: next(cpu))
    streams = [call(Kind.FINITE), call(Kind.FINITE)]
    with ExitStack() as stack:
        for made in (*streams, call(Kind.UNARY)):
            stack.enter_context(courtesy.around(made))
        threads = [threading.Thread(target=stream.give_way) for stream in streams]
        for thread in threads:
            thread.start()
        assert resting.acquire(timeout=PATIENCE)
        go_on.set()
        for thread in threads:
            thread.join(PATIENCE)
    assert most == [1, 1]


def test_a_stream_gives_way_after_each_response():
    given = []

    class Watching:
        def around(self, made):
            made.give_way = lambda: given.append(made.sent_messages)
            return ExitStack()

    def behaviour(request, context):
        yield from (b"a", b"b", b"c")

    method = Method("/s/M", Kind.FINITE, store_pb2.ListMessagesRequest.FromString, bytes)
    run = request_to_stream(method, behaviour, (Watching(),))
    assert list(run(b"", None)) == [b"a", b"b", b"c"]
    assert given == [1, 2, 3]
