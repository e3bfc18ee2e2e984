from __future__ import annotations

import threading

import grpc
import pytest

from flue.store.v1 import store_pb2, store_pb2_grpc
from flue_grpc.errors import CancelledError, DeadlineError
from flue_grpc.rpc import calls
from flue_grpc.rpc.calls import ContextCancel
from flue_grpc.rpc.interceptors import deadlines


def ended(call):
    with pytest.raises(grpc.RpcError) as caught:
        list(call)
    return caught.value.code(), caught.value.details()


def stalled_stream(server, **arguments):
    """A stream that its client stops reading; the client buffers little."""
    channel = server.connect(http2__bdp_probe=0)
    request = store_pb2.ListMessagesRequest(session_id="pour", **arguments)
    call = store_pb2_grpc.StoreStub(channel).ListMessages(request)
    next(call)
    return call


@pytest.mark.parametrize("follow", [False, True])
def test_a_reader_that_takes_nothing_is_cut_off(probe_server, wait_until, follow):
    with probe_server(stalled_reader=0.1) as server:
        server.probe.behaviours["pour"] = server.probe.pour
        call = stalled_stream(server, follow=follow)
        wait_until(lambda: server.probe.left == ["pour"])
        wait_until(lambda: not any(server.used().values()))
        assert ended(call) == (
            grpc.StatusCode.ABORTED,
            "the reader took nothing for too long",
        )
        wait_until(server.is_idle)


def test_without_the_private_way_a_stalled_reader_is_cancelled(
    probe_server, wait_until, monkeypatch
):
    class Public:
        def __init__(self, context):
            self.cancel = context.cancel

    real = calls.end_call
    with probe_server(stalled_reader=0.1) as server:
        monkeypatch.setattr(
            deadlines,
            "end_call",
            lambda context, code, message: real(Public(context), code, message),
        )
        server.probe.behaviours["pour"] = server.probe.pour
        call = stalled_stream(server)
        wait_until(lambda: server.probe.left == ["pour"])
        assert ended(call)[0] is grpc.StatusCode.CANCELLED
        wait_until(server.is_idle)


def test_a_unary_answer_that_nobody_takes_is_dropped(probe_server, wait_until):
    def large(request, context):
        session = store_pb2.Session(title="x" * 3_000_000)
        return store_pb2.GetSessionResponse(session=session)

    with probe_server(stalled_reader=0.2) as server:
        server.probe.behaviours |= {"large": large, "pour": server.probe.pour}
        channel = server.connect(http2__bdp_probe=0)
        stub = store_pb2_grpc.StoreStub(channel)
        # The connection's window is used up by a stream that nobody reads.
        for _ in range(3):
            next(stub.ListMessages(store_pb2.ListMessagesRequest(session_id="pour")))
        calls = [stub.GetSession.future(store_pb2.GetSessionRequest(id="large")) for _ in range(2)]
        wait_until(lambda: all(call.done() for call in calls))
        wait_until(lambda: server.runtime.guard.watching == 0)
        wait_until(server.is_idle)


def test_a_unary_call_without_a_deadline_gets_one(probe_server, wait_until):
    with probe_server(unary=0.1) as server:
        server.probe.behaviours["hold"] = server.probe.hold
        with pytest.raises(grpc.RpcError) as caught:
            server.get("hold")
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert caught.value.details() == "no response was ready in time"
        server.probe.gate.set()
        wait_until(server.is_idle)


def test_a_finite_stream_ends_only_when_no_response_comes(probe_server, wait_until):
    with probe_server(idle_stream=0.2) as server:
        server.probe.behaviours["hold"] = server.probe.hold_stream
        call = server.list("hold")
        next(call)
        assert ended(call) == (
            grpc.StatusCode.DEADLINE_EXCEEDED,
            "no response was ready in time",
        )
        wait_until(server.is_idle)
        assert server.probe.left == ["hold"]


def test_work_learns_of_cancellation_and_of_the_deadline(server, wait_until):
    seen = []
    goes_on = threading.Semaphore(0)

    def work(request, context):
        cancel = ContextCancel(context)
        assert not cancel.is_cancelled()
        cancel.check()
        yield store_pb2.ListMessagesResponse()
        goes_on.release()
        wait_until(cancel.is_cancelled)
        try:
            cancel.check()
        except (CancelledError, DeadlineError) as error:
            seen.append(type(error))
            raise

    server.probe.behaviours["work"] = work
    call = server.list("work")
    next(call)
    assert goes_on.acquire(timeout=20)
    call.cancel()
    wait_until(lambda: seen == [CancelledError])
    call = server.list("work", timeout=0.1)
    assert ended(call)[0] is grpc.StatusCode.DEADLINE_EXCEEDED
    wait_until(lambda: seen == [CancelledError, DeadlineError])
    wait_until(server.is_idle)


def test_an_idle_guard_rests(server, wait_until):
    server.get("ok")
    wait_until(server.is_idle)
    wait_until(lambda: not server.runtime.guard._work.is_set())
    server.get("ok")
    wait_until(server.is_idle)
