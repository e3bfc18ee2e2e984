"""``grpc.health.v1.Health``: whether each service serves, open to everybody.

grpcio's own servicer holds a lock while it waits for each watcher to take a
status, and takes that lock on the thread that the watchers wait for: one
watcher that leaves at the wrong moment stops the server. Here nobody waits
under a lock, watchers hold no worker, and one that takes nothing is dropped.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import grpc
from grpc_health.v1 import health_pb2

from flue_grpc import limits
from flue_grpc.rpc.calls import end_call
from flue_grpc.rpc.guard import stalled
from flue_grpc.rpc.workers import CallWorkers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flue_grpc.rpc.guard import Guard
    from flue_grpc.rpc.interceptors.chain import Registrar

    Send = Callable[[health_pb2.HealthCheckResponse | None], None]

NAME: Final = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
OVERALL: Final = ""
_Status = health_pb2.HealthCheckResponse
# typeshed knows neither List nor that a status is an int where protobuf gives one.
_messages: Final[Any] = health_pb2
_SENDERS: Final = 2  # a status is two bytes: only readers that stall keep one busy


class _Watcher:
    """One open Watch; ``sent`` is the status that its client has, ``turn`` of who tells it."""

    def __init__(self, context: grpc.ServicerContext, send: Send) -> None:
        self.context = context
        self.send = send
        self.sent: int | None = None
        self.is_done = False
        self.turn = threading.Lock()


class Health:
    """Statuses by service name, and who watches them."""

    def __init__(self, names: Iterable[str], guard: Guard) -> None:
        """Start with every service not serving."""
        self._guard = guard
        self._stalled = stalled(limits.HEALTH_STALL_SECONDS)
        self._lock = threading.Lock()
        self._statuses = dict.fromkeys((OVERALL, *names), int(_Status.NOT_SERVING))
        self._watchers: dict[str, set[_Watcher]] = {}
        self._is_ended = False
        self.senders = CallWorkers(_SENDERS, guard)

    def set(self, name: str, *, serves: bool) -> None:
        """Change a service's status and tell those who watch it; after ``end`` nothing."""
        with self._lock:
            if self._is_ended:
                return
            self._statuses[name] = int(_Status.SERVING if serves else _Status.NOT_SERVING)
            watchers = tuple(self._watchers.get(name, ()))
        for watcher in watchers:
            self.senders.submit(self._tell, name, watcher)

    def end(self) -> None:
        """Say NOT_SERVING for every service from now on, and end the watches."""
        with self._lock:
            self._is_ended = True
            self._statuses = dict.fromkeys(self._statuses, int(_Status.NOT_SERVING))
            watchers = [(name, each) for name, some in self._watchers.items() for each in some]
        for name, watcher in watchers:
            self.senders.submit(self._tell, name, watcher)

    def close(self) -> None:
        """Free the threads, after the last call."""
        self.senders.shutdown(wait=False)

    def check(
        self, request: health_pb2.HealthCheckRequest, context: grpc.ServicerContext
    ) -> health_pb2.HealthCheckResponse:
        """Return the status of one service; NOT_FOUND for a name that is not served."""
        status = self._statuses.get(request.service)
        if status is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        return _response(status)

    def list(self, request: object, context: grpc.ServicerContext) -> Any:  # noqa: ANN401  (unknown to typeshed)
        """Return the status of every service."""
        del request, context
        with self._lock:
            statuses = {name: _response(status) for name, status in self._statuses.items()}
        return _messages.HealthListResponse(statuses=statuses)

    def watch(
        self, request: health_pb2.HealthCheckRequest, context: grpc.ServicerContext, send: Send
    ) -> None:
        """Send the status now and whenever it changes, until the client leaves."""
        name = request.service
        watcher = _Watcher(context, send)
        with self._lock:
            is_full = sum(map(len, self._watchers.values())) >= limits.HEALTH_WATCHES
            if not is_full:
                self._watchers.setdefault(name, set()).add(watcher)
        if is_full:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many watches of health")
        if context.add_callback(partial(self._forget, name, watcher)):
            self._tell(name, watcher)
        else:
            self._forget(name, watcher)

    def _forget(self, name: str, watcher: _Watcher) -> None:
        with self._lock:
            self._watchers[name].discard(watcher)
            if not self._watchers[name]:
                del self._watchers[name]

    def _tell(self, name: str, watcher: _Watcher) -> None:
        with watcher.turn:
            # Taken together: the end must not be told before the status that it brings.
            with self._lock:
                status = self._statuses.get(name, int(_Status.SERVICE_UNKNOWN))
                is_ended = self._is_ended
            if watcher.is_done:
                return
            watcher.is_done = is_ended
            watched = self._guard.watch(partial(end_call, watcher.context))
            watched.expect(self._stalled)
            try:
                if status != watcher.sent:
                    watcher.send(_response(status))
                    watcher.sent = status
                if is_ended:
                    watcher.send(None)
            finally:
                self._guard.forget(watched)


def add_health(health: Health, registrar: Registrar) -> None:
    """Register the service; Watch as a non-blocking handler of grpcio, on its own threads."""

    def watch(
        request: health_pb2.HealthCheckRequest, context: grpc.ServicerContext, send: Send
    ) -> None:
        health.watch(request, context, send)

    watch.experimental_non_blocking = True  # type: ignore[attr-defined]  # read by grpcio
    watch.experimental_thread_pool = health.senders  # type: ignore[attr-defined]  # likewise
    parse = _messages.HealthCheckRequest.FromString
    serialize = _messages.HealthCheckResponse.SerializeToString
    registrar.add_registered_method_handlers(
        NAME,
        {
            "Check": grpc.unary_unary_rpc_method_handler(health.check, parse, serialize),
            "List": grpc.unary_unary_rpc_method_handler(
                health.list,
                _messages.HealthListRequest.FromString,
                _messages.HealthListResponse.SerializeToString,
            ),
            "Watch": grpc.unary_stream_rpc_method_handler(watch, parse, serialize),
        },
    )


def _response(status: int) -> health_pb2.HealthCheckResponse:
    return _Status(status=status)
