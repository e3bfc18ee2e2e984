from __future__ import annotations

import threading

import grpc
import pytest

from flue.store.v1 import store_pb2
from flue_grpc import limits
from flue_grpc.rpc import workers


def test_this_grpcio_is_known():
    """Where this fails, calls without a request hold a worker again."""
    assert workers._GRPCIO is not None


def test_calls_without_a_request_take_no_worker_and_no_place(server, wait_until):
    count = 500
    silent = [server.mute(method) for method in ("GetSession", "ListMessages") * (count // 2)]
    wait_until(lambda: server.runtime.workers.unread == count)
    assert not any(server.used().values())
    assert server.get("ok").session.id == "ok"
    assert len(server.runtime.workers._threads) < 10
    for call, release in silent:
        call.cancel()
        release.set()
    wait_until(server.is_idle)
    assert server.get("ok").session.id == "ok"


def test_calls_cancelled_before_their_request_leave_nothing(server, wait_until):
    for _ in range(20):
        silent = [server.mute() for _ in range(50)]
        for call, release in silent:
            call.cancel()
            release.set()
    wait_until(server.is_idle)
    assert server.get("ok").session.id == "ok"


def test_a_call_that_ends_without_a_request_is_refused_by_grpc(server, wait_until):
    call, release = server.mute()
    release.set()
    with pytest.raises(grpc.RpcError) as caught:
        list(call)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    wait_until(server.is_idle)


def test_a_call_whose_request_never_comes_is_dropped(probe_server, wait_until):
    with probe_server(unread=0.05) as server:
        server.probe.behaviours["ok"] = server.probe.answer
        call, release = server.mute()
        with pytest.raises(grpc.RpcError) as caught:
            list(call)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert caught.value.details() == "no request came in time"
        release.set()
        wait_until(server.is_idle)
        assert server.get("ok").session.id == "ok"


def test_of_too_many_calls_without_a_request_the_oldest_is_dropped(server, wait_until, monkeypatch):
    monkeypatch.setattr(limits, "UNREAD_CALLS", 3)
    silent = []
    for number in range(4):
        silent.append(server.mute())
        wait_until(lambda seen=number: server.runtime.workers.unread >= min(seen + 1, 3))
    with pytest.raises(grpc.RpcError) as caught:
        list(silent[0][0])
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    wait_until(lambda: server.runtime.workers.unread == 3)
    assert server.get("ok").session.id == "ok"
    for call, release in silent:
        call.cancel()
        release.set()
    wait_until(server.is_idle)


def test_a_request_that_comes_late_is_served(server, wait_until):
    ready = threading.Event()

    def late():
        ready.wait(20)
        yield store_pb2.GetSessionRequest(id="ok").SerializeToString()

    call = server.channel.stream_unary("/flue.store.v1.Store/GetSession").future(late())
    wait_until(lambda: server.runtime.workers.unread == 1)
    ready.set()
    answer = store_pb2.GetSessionResponse.FromString(call.result(20))
    assert answer.session.id == "ok"
    wait_until(server.is_idle)


def test_what_is_no_message_is_refused_without_a_trace_in_the_log(server, caplog, wait_until):
    call = server.channel.unary_unary("/flue.store.v1.Store/GetSession")
    with pytest.raises(grpc.RpcError) as caught:
        call(b"\xff\xffsecret")
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert caught.value.details() == "the request cannot be decoded"
    wait_until(server.is_idle)
    assert caplog.text == ""


def test_an_unknown_method_of_a_known_service(server):
    call = server.channel.unary_unary("/flue.store.v1.Store/Nothing")
    with pytest.raises(grpc.RpcError) as caught:
        call(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_where_grpcio_is_another_one_calls_are_served_its_way(
    probe_server, monkeypatch, wait_until
):
    monkeypatch.setattr(workers, "_GRPCIO", None)
    with probe_server() as server:
        server.probe.behaviours["ok"] = server.probe.answer
        assert server.get("ok").session.id == "ok"
        call, release = server.mute()
        assert server.get("ok").session.id == "ok"
        call.cancel()
        release.set()
        wait_until(server.is_idle)
