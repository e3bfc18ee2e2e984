from __future__ import annotations

import threading

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_status import rpc_status

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue.store.v1 import store_pb2 as st
from flue_grpc.rpc.reflection import add_reflection
from tests.wire import homes


def reason(error):
    info = error_details_pb2.ErrorInfo()
    rpc_status.from_call(error).details[0].Unpack(info)
    return info.reason


def test_new_calls_are_refused_and_running_ones_finish(server, wait_until):
    server.probe.behaviours |= {"hold": server.probe.hold, "stream": server.probe.hold_stream}
    unary = server.get_later("hold")
    stream = server.list("stream")
    next(stream)
    for _ in range(2):
        assert server.probe.entered.acquire(timeout=20)
    assert server.runtime.drain.running == 2
    server.runtime.begin_drain()
    for call in (lambda: server.get("ok"), lambda: list(server.list("stream"))):
        with pytest.raises(grpc.RpcError) as caught:
            call()
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert reason(caught.value) == "DRAINING"
    assert not server.runtime.drain.wait(0)
    server.probe.gate.set()
    assert unary.result(20).session.id == "hold"
    assert list(stream) == []
    assert server.runtime.drain.wait(20)
    wait_until(server.is_idle)


def test_streams_that_would_never_end_are_woken(server):
    woken = threading.Event()
    undo = server.runtime.drain.subscribe(woken.set)
    other = threading.Event()
    server.runtime.drain.subscribe(other.set)()
    assert not server.runtime.drain.is_draining
    server.runtime.begin_drain()
    assert woken.is_set()
    assert not other.is_set()
    late = threading.Event()
    server.runtime.drain.subscribe(late.set)
    assert late.is_set()
    undo()


def test_calls_without_a_request_end(server, wait_until):
    call, release = server.mute()
    wait_until(lambda: server.runtime.workers.unread == 1)
    server.runtime.begin_drain()
    with pytest.raises(grpc.RpcError) as caught:
        list(call)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    release.set()
    wait_until(server.is_idle)


def test_an_open_reflection_stream_ends(probe_server, wait_until):
    with probe_server(services=add_reflection) as server:
        stub = reflection_pb2_grpc.ServerReflectionStub(server.channel)
        done = threading.Event()

        def requests():
            yield reflection_pb2.ServerReflectionRequest(list_services="")
            done.wait(20)

        call = stub.ServerReflectionInfo(requests())
        assert next(call).list_services_response.service
        assert server.used()["reflection"] == 1
        server.runtime.begin_drain()
        with pytest.raises(grpc.RpcError) as caught:
            list(call)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        done.set()
        wait_until(server.is_idle)


def test_the_server_stops_when_its_calls_have_finished(make_flue):
    flue = make_flue(drain_seconds=30.0)
    homes.write_session(flue.home, 0, [homes.user_line(0, "x" * 100) for _ in range(2000)])
    flue.start().swept()
    request = ai.ReadTranscriptRequest(tool="claude", id=homes.session_id(0))
    stream = flue.index.ReadTranscript(request)
    first = next(stream)
    stopping = threading.Thread(target=flue.server.stop)
    stopping.start()
    rest = sum(len(response.page.messages) for response in stream)
    assert len(first.page.messages) + rest == 2000
    stopping.join(20)
    assert not stopping.is_alive()
    flue.channel.close()
    flue.server = None
    assert not flue.socket.exists()


def test_at_the_end_of_the_grace_period_calls_are_cut_off(make_flue):
    flue = make_flue(drain_seconds=0.05)
    flue.start()
    flue.store.CreateSession(st.CreateSessionRequest(id="s"))
    held, let_go = threading.Event(), threading.Event()
    store = flue.server.services.store
    get_session = store.get_session

    def slow(*arguments):
        held.set()
        let_go.wait(20)
        return get_session(*arguments)

    store.get_session = slow
    call = flue.store.GetSession.future(st.GetSessionRequest(id="s"))
    assert held.wait(20)
    stopping = threading.Thread(target=flue.server.stop)
    stopping.start()
    with pytest.raises(grpc.RpcError):
        call.result(20)
    let_go.set()
    stopping.join(20)
    assert not stopping.is_alive()
    flue.channel.close()
    flue.server = None


def test_what_was_answered_before_the_stop_is_there_after_it(flue):
    for number in range(20):
        flue.store.CreateSession(st.CreateSessionRequest(id=f"s{number}"))
    flue.restart()
    names = {
        session.id
        for response in flue.store.ListSessions(st.ListSessionsRequest())
        for session in response.sessions
    }
    assert names == {f"s{number}" for number in range(20)}
