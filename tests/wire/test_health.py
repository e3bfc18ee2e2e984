from __future__ import annotations

import threading

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from flue_grpc import limits
from flue_grpc.rpc.runtime import AGENT_INDEX_NAME, STORE_NAME

SERVING, NOT_SERVING, UNKNOWN = 1, 2, 3


@pytest.fixture
def health(server):
    return health_pb2_grpc.HealthStub(server.channel)


def check(health, name=""):
    return health.Check(health_pb2.HealthCheckRequest(service=name), timeout=20).status


def watch(health, name="", **arguments):
    return health.Watch(health_pb2.HealthCheckRequest(service=name), **arguments)


def test_every_service_has_a_status_and_others_have_none(server, health):
    for name in ("", STORE_NAME, AGENT_INDEX_NAME):
        assert check(health, name) == NOT_SERVING
        server.runtime.health.set(name, serves=True)
        assert check(health, name) == SERVING
    with pytest.raises(grpc.RpcError) as caught:
        check(health, "flue.store.v2.Store")
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    listed = health.List(health_pb2.HealthListRequest()).statuses
    assert {name: status.status for name, status in listed.items()} == {
        "": SERVING,
        STORE_NAME: SERVING,
        AGENT_INDEX_NAME: SERVING,
    }


def test_a_watch_gets_the_status_now_and_each_change(server, health, wait_until):
    call = watch(health, STORE_NAME)
    assert next(call).status == NOT_SERVING
    for serves in (True, False, True):
        server.runtime.health.set(STORE_NAME, serves=serves)
        assert next(call).status == (SERVING if serves else NOT_SERVING)
    server.runtime.health.set(STORE_NAME, serves=True)
    server.runtime.health.set(STORE_NAME, serves=False)
    assert next(call).status == NOT_SERVING
    call.cancel()
    wait_until(lambda: server.runtime.health._watchers == {})


def test_a_service_that_is_not_served_can_be_watched(health):
    call = watch(health, "other")
    assert next(call).status == UNKNOWN
    call.cancel()


def test_watches_hold_no_worker(server, health, wait_until):
    calls = [watch(health) for _ in range(200)]
    assert [next(call).status for call in calls] == [NOT_SERVING] * 200
    server.runtime.health.set("", serves=True)
    assert [next(call).status for call in calls] == [SERVING] * 200
    assert len(server.runtime.workers._threads) < 10
    assert len(server.runtime.health.senders._threads) <= 2
    for call in calls:
        call.cancel()
    wait_until(lambda: server.runtime.health._watchers == {})


def test_watches_are_bounded_because_anybody_may_open_them(server, health, wait_until, monkeypatch):
    monkeypatch.setattr(limits, "HEALTH_WATCHES", 3)
    calls = [watch(health, name) for name in ("", "a", "b")]
    assert [next(call).status for call in calls] == [NOT_SERVING, UNKNOWN, UNKNOWN]
    with pytest.raises(grpc.RpcError) as caught:
        next(watch(health, timeout=20))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert check(health) == NOT_SERVING
    calls.pop().cancel()
    wait_until(lambda: len(server.runtime.health._watchers) == 2)
    assert next(watch(health, timeout=20)).status == NOT_SERVING
    for call in calls:
        call.cancel()


def test_watchers_that_leave_during_a_change_stop_nobody(server, health, wait_until):
    stop = threading.Event()

    def change():
        while not stop.wait(0.0002):  # as often as it can be without keeping all others waiting
            server.runtime.health.set("", serves=True)
            server.runtime.health.set("", serves=False)

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(300):
            call = watch(health)
            next(call)
            call.cancel()
            assert check(health) in (SERVING, NOT_SERVING)
    finally:
        stop.set()
        changer.join()
    wait_until(lambda: server.runtime.health._watchers == {})
    assert server.get("ok").session.id == "ok"


def test_shutdown_tells_watchers_and_ends_their_streams(server, health):
    server.runtime.health.set("", serves=True)
    call = watch(health)
    assert next(call).status == SERVING
    server.runtime.begin_drain()
    assert [answer.status for answer in call] == [NOT_SERVING]
    assert check(health) == NOT_SERVING
    assert [answer.status for answer in watch(health, timeout=20)] == [NOT_SERVING]
