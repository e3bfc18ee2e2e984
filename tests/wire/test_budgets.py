from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from flue.store.v1 import store_pb2
from flue_grpc import limits
from flue_grpc.rpc.interceptors.budgets import BudgetSizes

FILES = Path("/proc/self/fd")


def details_of(error):
    """The details of an error by their type's name."""
    found = {}
    for packed in rpc_status.from_call(error).details:
        detail = getattr(error_details_pb2, packed.TypeName().rpartition(".")[2])()
        packed.Unpack(detail)
        found[type(detail).__name__] = detail
    return found


def busy(error, budget, limit):
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    found = details_of(error)
    assert found["ErrorInfo"].reason == "BUSY"
    assert dict(found["ErrorInfo"].metadata) == {"budget": budget, "limit": limit}
    assert found["RetryInfo"].retry_delay.ToNanoseconds() == 250_000_000
    return True


def enter(server, count):
    for _ in range(count):
        assert server.probe.entered.acquire(timeout=20)


def test_a_unary_call_over_the_budget_is_refused_at_once(server, wait_until):
    server.probe.behaviours["hold"] = server.probe.hold
    held = [server.get_later("hold") for _ in range(2)]
    enter(server, 2)
    assert server.used() == {"live": 0, "finite": 0, "unary": 2, "reflection": 0}
    for _ in range(20):
        with pytest.raises(grpc.RpcError) as caught:
            server.get("ok")
        assert busy(caught.value, "unary", "2")
    server.probe.gate.set()
    assert [call.result(20).session.id for call in held] == ["hold", "hold"]
    wait_until(server.is_idle)
    assert server.get("ok").session.id == "ok"
    assert server.runtime.budgets.by_kind["unary"].refused == 20


def test_follow_decides_which_budget_a_list_draws_on(server, wait_until):
    server.probe.behaviours["hold"] = server.probe.hold_stream
    finite = [server.list("hold") for _ in range(3)]
    live = [server.list("hold", follow=True) for _ in range(4)]
    enter(server, 7)
    assert server.used() == {"live": 4, "finite": 3, "unary": 0, "reflection": 0}
    with pytest.raises(grpc.RpcError) as caught:
        next(server.list("hold"))
    assert busy(caught.value, "finite", "3")
    with pytest.raises(grpc.RpcError) as caught:
        next(server.list("hold", follow=True))
    assert busy(caught.value, "live", "4")
    assert server.get("ok").session.id == "ok"
    for call in (*finite, *live):
        call.cancel()
    wait_until(server.is_idle)
    assert len(server.probe.left) == 7


def test_a_place_is_free_again_however_the_call_ends(server, wait_until):
    def fails(request, context):
        raise ValueError(request.id)

    def fails_late(request, context):
        yield store_pb2.ListMessagesResponse()
        raise ValueError(request.session_id)

    def empty(request, context):
        yield from ()

    server.probe.behaviours |= {"fails": fails, "fails late": fails_late, "empty": empty}
    server.probe.behaviours["hold"] = server.probe.hold_stream
    server.probe.behaviours["pour"] = server.probe.pour
    for _ in range(10):
        with pytest.raises(grpc.RpcError):
            server.get("fails")
        with pytest.raises(grpc.RpcError):
            list(server.list("fails late"))
        assert list(server.list("empty")) == []
        with pytest.raises(grpc.RpcError):
            list(server.list("hold", timeout=0.02))
        call = server.list("pour")
        next(call)
        call.cancel()
        wait_until(lambda: not any(server.used().values()))
    wait_until(server.is_idle)


def test_health_is_answered_while_every_budget_is_spent(server, wait_until):
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    server.probe.behaviours["hold"] = server.probe.hold
    server.probe.behaviours["stream"] = server.probe.hold_stream
    calls = [server.get_later("hold") for _ in range(2)]
    calls += [server.list("stream") for _ in range(3)]
    calls += [server.list("stream", follow=True) for _ in range(4)]
    enter(server, 9)
    health = health_pb2_grpc.HealthStub(server.channel)
    server.runtime.health.set("", serves=True)
    for _ in range(50):
        assert health.Check(health_pb2.HealthCheckRequest(), timeout=5).status == 1
    for call in calls:
        call.cancel()


def test_the_workers_are_the_budgets_and_some_for_refusals():
    assert BudgetSizes().workers == 256 + 32 + 32 + 8 + 16
    assert BudgetSizes().workers < limits.MAX_CONCURRENT_STREAMS


def test_hundreds_of_calls_at_once_are_served_or_refused(server, wait_until):
    server.probe.behaviours["hold"] = server.probe.hold
    calls = [server.get_later("hold") for _ in range(400)]
    enter(server, 2)
    refused = [call for call in calls if not call.done() or call.exception(20) is not None]
    wait_until(lambda: sum(call.done() for call in calls) == 398)
    assert all(busy(call.exception(), "unary", "2") for call in calls if call.done())
    assert len(refused) == 400
    server.probe.gate.set()
    wait_until(lambda: all(call.done() for call in calls))
    assert sum(call.exception() is None for call in calls) == 2
    wait_until(server.is_idle)


def open_files():
    return len(list(FILES.iterdir()))


@pytest.mark.skipif(not FILES.is_dir(), reason="needs /proc")
def test_thousands_of_cancelled_calls_leave_nothing_behind(server, wait_until):
    server.probe.behaviours["hold"] = server.probe.hold_stream
    server.probe.behaviours["pour"] = server.probe.pour

    def cancel_some(count):
        for number in range(count):
            name = ("hold", "pour")[number % 2]
            call = server.list(name, follow=number % 3 == 0)
            if number % 4:
                with suppress(grpc.RpcError):  # refused: the place of an earlier one is held
                    next(call)
            call.cancel()
            unary = server.get_later("ok")
            if number % 2:
                unary.cancel()

    cancel_some(100)
    wait_until(server.is_idle)
    files, threads = open_files(), threading.active_count()
    cancel_some(2000)
    wait_until(server.is_idle)
    wait_until(lambda: open_files() <= files)
    most_workers = server.runtime.workers._max_workers
    assert len(server.runtime.workers._threads) <= most_workers
    wait_until(lambda: threading.active_count() <= threads + most_workers)
    assert server.get("ok").session.id == "ok"
