"""The threads that calls run on; a call gets one only once its request has arrived.

grpcio's own pool gives a thread to every call that is opened, and lets it wait
there for the request: clients that send none would use up the pool, whatever
the budgets say. Here the request is awaited without a thread. That leans on
how grpcio hands calls to a pool; where it does so in another way, calls are
served as grpcio serves them.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import grpc

from flue_grpc import limits
from flue_grpc.rpc.guard import unread

if TYPE_CHECKING:
    from collections.abc import Callable

    from flue_grpc.rpc.guard import Guard, Watched


class _Grpcio(NamedTuple):
    """The private parts of grpcio that it takes to await a request."""

    call_state: Any
    is_active: Any
    receive_message: Any
    receive_token: Any
    receive_operation: Any


def _find_private_parts() -> _Grpcio | None:
    """Find them; None when this grpcio is made in another way."""
    server_names = (
        "_RPCState",
        "_is_rpc_state_active",
        "_receive_message",
        "_RECEIVE_MESSAGE_TOKEN",
    )
    try:
        from_server = attrgetter(*server_names)(import_module("grpc._server"))
        operation = import_module("grpc._cython.cygrpc").ReceiveMessageOperation
    except (ImportError, AttributeError):
        return None
    return _Grpcio(*from_server, operation)


_GRPCIO: Final = _find_private_parts()
_LOGGER: Final = logging.getLogger("flue_grpc.workers")
_ARGUMENTS: Final = 7  # runner, event, state, behaviour, getter, deserializer, serializer
_GETTER_NAME: Final = "unary_request"


class CallWorkers(ThreadPoolExecutor):
    """A thread pool for grpcio that never waits for a client's request."""

    def __init__(
        self, workers: int, guard: Guard, unread_seconds: float = limits.UNREAD_SECONDS
    ) -> None:
        """Run at most ``workers`` calls at once; drop those without a request in time."""
        super().__init__(max_workers=workers, thread_name_prefix="flue-call")
        self._guard = guard
        self._patience = unread(unread_seconds)
        self._unread: dict[int, _UnreadCall] = {}
        self._unread_lock = threading.Lock()

    @property
    def unread(self) -> int:
        """The number of calls whose request has not arrived yet."""
        return len(self._unread)

    def submit(
        self,
        fn: Callable[..., Any],
        /,
        *args: Any,  # noqa: ANN401  (as in the base class)
        **kwargs: Any,  # noqa: ANN401  (as in the base class)
    ) -> Future[Any]:
        """Run ``fn`` on a worker, for a call of grpcio when its request is there.

        Never raises: that would end the thread on which grpcio serves all calls.
        """
        call = None if _GRPCIO is None else _UnreadCall.of(fn, args, _GRPCIO)
        if call is not None:
            self._await(call)
            return call.done
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError:  # shut down, or no thread to be had
            refused: Future[Any] = Future()
            refused.set_result(None)
            return refused

    def _await(self, call: _UnreadCall) -> None:
        with self._unread_lock:
            self._unread[id(call)] = call
            surplus = len(self._unread) - limits.UNREAD_CALLS
            oldest = next(iter(self._unread.values())) if surplus > 0 else None
        if oldest is not None:
            oldest.end(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many calls without a request")
        call.watched = self._guard.watch(call.end)
        call.watched.expect(self._patience)
        try:
            call.read(self._serve)
        except Exception:
            _LOGGER.exception("a call could not be read")
            self._serve(call)

    def end_unread(self) -> None:
        """End the calls whose request has not arrived."""
        with self._unread_lock:
            waiting = tuple(self._unread.values())
        for call in waiting:
            call.end(grpc.StatusCode.UNAVAILABLE, "the server is shutting down")

    def _serve(self, call: _UnreadCall) -> None:
        with self._unread_lock:
            self._unread.pop(id(call), None)
        if call.watched is not None:
            self._guard.forget(call.watched)
            call.watched = None  # it knows the call: a cycle would keep what was sent alive
        if call.is_over():
            call.finish()
            return
        try:
            super().submit(call.run)
        except RuntimeError:  # shut down, or no thread to be had
            call.end(grpc.StatusCode.UNAVAILABLE, "no worker is free")
            call.finish()


class _UnreadCall:
    """A call as grpcio submits it, between its start and the arrival of its request."""

    __slots__ = ("_arguments", "_event", "_function", "_grpcio", "_state", "done", "watched")

    def __init__(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], grpcio: _Grpcio
    ) -> None:
        self._function = function
        self._arguments = arguments
        self._grpcio = grpcio
        self._event = arguments[1]
        self._state = arguments[2]
        self.done: Future[Any] = Future()
        self.watched: Watched | None = None

    @classmethod
    def of(
        cls, function: Callable[..., Any], arguments: tuple[Any, ...], grpcio: _Grpcio
    ) -> _UnreadCall | None:
        """Recognise a call with one request; None for anything else."""
        if len(arguments) != _ARGUMENTS or not isinstance(arguments[2], grpcio.call_state):
            return None
        if getattr(arguments[4], "__name__", "") != _GETTER_NAME:
            return None
        return cls(function, arguments, grpcio)

    def read(self, then: Callable[[_UnreadCall], None]) -> None:
        """Ask for the request; ``then`` is called on grpcio's thread and must not block it."""
        state = self._state
        receive = self._grpcio.receive_message(state, self._event.call, self._arguments[5])

        def arrived(event: object) -> object:
            finished = receive(event)
            then(self)
            return finished

        with state.condition:
            operations = (self._grpcio.receive_operation(0),)
            self._event.call.start_server_batch(operations, arrived)
            state.due.add(self._grpcio.receive_token)

    def is_over(self) -> bool:
        """Say whether the call ended before its request came."""
        with self._state.condition:
            return not self._grpcio.is_active(self._state)

    def run(self) -> None:
        """Serve the call; one without a request is refused by grpcio's own getter."""
        runner, event, state, behaviour, getter, deserializer, serializer = self._arguments
        take = getter if state.request is None else self._take
        try:
            self._function(runner, event, state, behaviour, take, deserializer, serializer)
        finally:
            self.finish()

    def finish(self) -> None:
        """Tell grpcio that the call holds no worker any more."""
        with suppress(InvalidStateError):
            self.done.set_result(None)

    def _take(self) -> object:
        with self._state.condition:
            request, self._state.request = self._state.request, None
        return request

    def end(self, code: grpc.StatusCode, message: str) -> None:
        """End the call from any thread."""
        self._event.call.cancel(code.value[0], message)
