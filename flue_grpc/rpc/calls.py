"""One call: what its interceptors share, and how work learns that it is over."""

from __future__ import annotations

import secrets
import time
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import grpc
from google.protobuf.message import DecodeError

from flue_grpc.errors import CancelledError, DeadlineError
from flue_grpc.observability.trace_context import trace_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from google.protobuf.message import Message

    from flue_grpc.rpc.guard import Patience, Watched

# grpcio reports the absence of a deadline as 9.2e18 seconds that remain.
_NO_DEADLINE_SECONDS: Final = 1e9


class Kind(StrEnum):
    """How a call uses a worker, and so which budget it draws on (contract rule 5)."""

    UNARY = "unary"
    FINITE = "finite"
    LIVE = "live"
    REFLECTION = "reflection"
    HEALTH = "health"


@dataclass(frozen=True, slots=True)
class Method:
    """One RPC: its path, ``/package.Service/Name``, its kind and its messages.

    ``kind`` is that of a call without ``follow``; ``parse`` reads a request.
    """

    path: str
    kind: Kind
    parse: Callable[[bytes], Message]
    serialize: Callable[[Message], bytes]


def _go_on() -> None:
    """Give way to nobody."""


def _still_allowed() -> bool:
    """Say yes: nobody has asked for credentials that could be taken away."""
    return True


class Call:
    """One call under way, used by its worker alone.

    ``principal`` names the caller, empty where nobody asks for credentials, and
    ``is_allowed`` says from any thread whether these still hold.

    ``give_way`` may rest; a stream calls it before each response but the first.

    ``send_patience`` and ``work_patience`` bound the two states of a stream that
    the guard watches; they are set together with ``watched``.
    """

    __slots__ = (
        "_request",
        "context",
        "give_way",
        "id",
        "is_allowed",
        "method",
        "principal",
        "raw",
        "received_bytes",
        "send_patience",
        "sent_bytes",
        "sent_messages",
        "started",
        "watched",
        "work_patience",
    )

    def __init__(self, method: Method, context: grpc.ServicerContext, raw: bytes) -> None:
        self.method = method
        self.context = context
        self.id = secrets.token_hex(8)
        self.principal = ""
        self.is_allowed: Callable[[], bool] = _still_allowed
        self.raw = raw
        self.received_bytes = len(raw)
        self.sent_bytes = 0
        self.sent_messages = 0
        self.started = time.monotonic()
        self.watched: Watched | None = None
        self.send_patience: Patience | None = None
        self.work_patience: Patience | None = None
        self.give_way: Callable[[], None] = _go_on
        self._request: Message | None = None

    @property
    def request(self) -> Any:  # noqa: ANN401  (each method knows its own message)
        """The request, read on first use: credentials come before a 34 MiB message."""
        if self._request is None:
            try:
                self._request = self.method.parse(self.raw)
            except DecodeError:
                # The code that gRPC itself gives to what is no protobuf message.
                self.context.abort(grpc.StatusCode.INTERNAL, "the request cannot be decoded")
            self.raw = b""
        return self._request

    @property
    def kind(self) -> Kind:
        """The kind of this very call: a ``follow`` is live."""
        if self.method.kind is Kind.FINITE and getattr(self.request, "follow", False):
            return Kind.LIVE
        return self.method.kind

    @property
    def trace_id(self) -> str:
        """The trace that the call came in (W3C ``traceparent``); empty when there is none."""
        trace = trace_of(self.context.invocation_metadata() or ())
        return trace.trace_id if trace else ""

    def encode(self, response: Message) -> bytes:
        """Serialise a response and count it."""
        data = self.method.serialize(response)
        self.sent_messages += 1
        self.sent_bytes += len(data)
        return data

    def sending(self) -> None:
        """Tell the guard that the client has to take a response now."""
        if self.watched is not None:
            self.watched.expect(self.send_patience)

    def working(self) -> None:
        """Tell the guard that the server has to make a response now."""
        if self.watched is not None:
            self.watched.expect(self.work_patience)

    def requests(self, raw_requests: Iterator[bytes]) -> Iterator[Message]:
        """Read and count the requests of a call that streams them."""
        for raw in raw_requests:
            self.received_bytes += len(raw)
            self.raw = raw
            self._request = None
            yield self.request


@contextmanager
def pausing(context: grpc.ServicerContext, pause: Callable[[], None]) -> Iterator[None]:
    """Have the work of a call ask ``pause``, which may rest, whenever it asks if it is over."""
    context.pause = pause  # type: ignore[attr-defined]  # a handler gets nothing else of its call
    try:
        yield
    finally:
        del context.pause  # type: ignore[attr-defined]  # what knows the call would keep it alive


class ContextCancel:
    """The domain's ``Cancel`` on a call (contract rule 4).

    The server's own deadlines end the call itself, so they show here too. A check
    may rest, see ``pausing``.
    """

    __slots__ = ("_context", "_pause")

    def __init__(self, context: grpc.ServicerContext) -> None:
        self._context = context
        self._pause: Callable[[], None] = getattr(context, "pause", _go_on)

    def is_cancelled(self) -> bool:
        """Say whether nobody waits for the answer any more."""
        return not self._context.is_active()

    def check(self) -> None:
        """Raise CancelledError or DeadlineError when nobody waits."""
        self._pause()
        if self._context.is_active():
            return
        remaining = time_remaining(self._context)
        if remaining is not None and remaining <= 0:
            raise DeadlineError("the deadline is over")
        raise CancelledError("the call was cancelled")


def time_remaining(context: grpc.ServicerContext) -> float | None:
    """Seconds until the client's deadline; None when it has set none."""
    remaining: float | None = context.time_remaining()
    if remaining is None or remaining > _NO_DEADLINE_SECONDS:
        return None
    return remaining


def code_of(context: grpc.ServicerContext) -> grpc.StatusCode | None:
    """Return the status that a call was given; None when it has none yet."""
    code = context.code()  # type: ignore[attr-defined]  # missing in typeshed
    return code if isinstance(code, grpc.StatusCode) else None


def final_code(call: Call, *, left_early: bool) -> str:
    """Name the status that a call ended with; ``left_early``: its handler did not finish."""
    # What the guard said reached the client first, whatever the handler made of it.
    if call.watched is not None and call.watched.ended_with is not None:
        return call.watched.ended_with.name
    code = code_of(call.context)
    if code is not None:
        return code.name
    return "CANCELLED" if left_early else "OK"


def is_aborted(context: grpc.ServicerContext) -> bool:
    """Say whether the call has its status, so that an exception is only its way out."""
    try:
        return code_of(context) is not None
    except NotImplementedError:  # grpcio-testing
        return not context.is_active()


def end_call(context: grpc.ServicerContext, code: grpc.StatusCode, message: str) -> None:
    """End a call from another thread, which frees its worker at once.

    grpcio has no public way to give such a call a status (practice §2.5.4):
    where the private one is missing, the client sees CANCELLED.
    """
    try:
        context._rpc_event.call.cancel(code.value[0], message)  # type: ignore[attr-defined]  # noqa: SLF001
    except (AttributeError, TypeError, ValueError):
        context.cancel()
