"""Puts interceptors around the handlers of a service.

They are put in at registration and not by ``grpc.server(interceptors=…)``, so
that they hold on a server that somebody else made, too. Requests and responses
are parsed and serialised here, on the call's worker, and counted.
"""

from __future__ import annotations

import traceback
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, cast

import grpc

from flue_grpc.rpc.calls import Call, Kind, Method

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from flue_grpc.rpc.workers import CallWorkers

    Behaviour = Callable[[Any, grpc.ServicerContext], Any]


class Interceptor(Protocol):
    """Something that stands around whole calls."""

    def around(self, call: Call) -> AbstractContextManager[object]:
        """Enter before the call works, leave after it; raising a FlueError refuses it."""


class Registrar:
    """Takes the place of a server in generated ``add_…Servicer_to_server`` functions."""

    def __init__(
        self,
        server: grpc.Server,
        workers: CallWorkers,
        interceptors: Sequence[Interceptor],
        kinds: Mapping[str, Kind],
    ) -> None:
        """Register on ``server``; ``kinds``, by path or service, where a shape does not tell."""
        self._server = server
        self._workers = workers
        self._interceptors = tuple(interceptors)
        self._kinds = kinds
        self.services: list[str] = []

    def as_server(self) -> grpc.Server:
        """Pass for the server that generated code wants to see."""
        return cast("grpc.Server", self)

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Ignore what ``add_registered_method_handlers`` brings as well."""

    def add_registered_method_handlers(
        self, service: str, handlers: Mapping[str, grpc.RpcMethodHandler[Any, Any]]
    ) -> None:
        """Register the handlers of a service, each with the interceptors around it."""
        self.services.append(service)
        around = {
            name: self._intercept(f"/{service}/{name}", handler)
            for name, handler in handlers.items()
        }
        generic = grpc.method_handlers_generic_handler(service, around)
        self._server.add_generic_rpc_handlers((generic,))
        self._server.add_registered_method_handlers(service, around)

    def _intercept(
        self,
        path: str,
        handler: Any,  # noqa: ANN401  (its codecs are optional in typeshed alone)
    ) -> grpc.RpcMethodHandler[Any, Any]:
        if getattr(handler.unary_stream, "experimental_non_blocking", False):
            return cast("grpc.RpcMethodHandler[Any, Any]", handler)
        usual = Kind.FINITE if handler.response_streaming else Kind.UNARY
        of_service = self._kinds.get(path.split("/")[1], usual)
        method = Method(
            path,
            self._kinds.get(path, of_service),
            handler.request_deserializer,
            handler.response_serializer,
        )
        return intercept(handler, method, self._interceptors, self._workers)


def intercept(
    handler: Any,  # noqa: ANN401  (which of its behaviours is set depends on its shape)
    method: Method,
    interceptors: Sequence[Interceptor],
    workers: CallWorkers,
) -> grpc.RpcMethodHandler[Any, Any]:
    """Make a handler of bytes that runs ``handler`` inside the interceptors, first outermost."""
    made: grpc.RpcMethodHandler[Any, Any]
    if handler.request_streaming:
        behaviour = _requests_to_stream(method, handler.stream_stream, interceptors)
        made = grpc.stream_stream_rpc_method_handler(behaviour)
    elif handler.response_streaming:
        behaviour = request_to_stream(method, handler.unary_stream, interceptors)
        made = grpc.unary_stream_rpc_method_handler(behaviour)
    else:
        behaviour = request_to_response(method, handler.unary_unary, interceptors)
        made = grpc.unary_unary_rpc_method_handler(behaviour)
    behaviour.experimental_thread_pool = workers  # type: ignore[attr-defined]  # read by grpcio
    return made


def request_to_response(
    method: Method, behaviour: Behaviour, interceptors: Sequence[Interceptor]
) -> Behaviour:
    """Stand around a unary call."""

    def run(raw: bytes, context: grpc.ServicerContext) -> bytes:
        call = Call(method, context, raw)
        with _entered(call, interceptors):
            return call.encode(behaviour(call.request, context))

    return run


def request_to_stream(
    method: Method, behaviour: Behaviour, interceptors: Sequence[Interceptor]
) -> Behaviour:
    """Stand around a call that streams its responses."""

    def run(raw: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        call = Call(method, context, raw)
        with _entered(call, interceptors):
            yield from _send(call, behaviour(call.request, context))

    return run


def _requests_to_stream(
    method: Method, behaviour: Behaviour, interceptors: Sequence[Interceptor]
) -> Behaviour:
    def run(raw: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        call = Call(method, context, b"")
        with _entered(call, interceptors):
            yield from _send(call, behaviour(call.requests(raw), context))

    return run


@contextmanager
def _entered(call: Call, interceptors: Sequence[Interceptor]) -> Iterator[None]:
    try:
        with ExitStack() as stack:
            for interceptor in interceptors:
                stack.enter_context(interceptor.around(call))
            yield
    except BaseException as error:
        _release(error)
        raise


def _release(error: BaseException | None) -> None:
    """Empty the frames that an error came through.

    ExitStack leaves errors in a cycle with them, and so a response of 32 MiB alive
    until the collector comes by, for each reader that was cut off.
    """
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def _send(call: Call, responses: Any) -> Iterator[bytes]:  # noqa: ANN401  (a generator)
    with closing(responses):
        for response in responses:
            data = call.encode(response)
            if call.sent_messages > 1:
                call.give_way()
            call.sending()
            yield data
            call.working()
