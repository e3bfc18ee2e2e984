"""Making calls: credentials, deadlines, repeats and resumes in one place."""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import grpc

from flue_grpc.client.failures import CallError, from_rpc_error
from flue_grpc.client.retry import Backoff, Deadline, RetryPolicy, may_repeat

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from google.protobuf.message import Message

    from flue_grpc.client.retry import OnBreak
    from flue_grpc.client.target import Target

Request = TypeVar("Request", bound="Message")
Response = TypeVar("Response", bound="Message")
Answer = TypeVar("Answer")
Request_co = TypeVar("Request_co", bound="Message", covariant=True)
Response_contra = TypeVar("Response_contra", bound="Message", contravariant=True)


class Place(Protocol[Request_co, Response_contra]):
    """How far a stream has come, and the request that goes on from there.

    ``is_complete`` says that the last response was the end of what is wanted
    (contract rule 2): a break after it loses nothing.
    """

    is_complete: bool

    def request(self) -> Request_co:
        """Ask for what comes after the last response."""

    def advance(self, response: Response_contra) -> None:
        """Note that ``response`` has arrived."""

    def goes_on(self) -> bool:
        """Say whether more is wanted after a call that ended well."""

    @property
    def is_live(self) -> bool:
        """Whether the stream has no end of its own, such as a follow or a watch."""


class Handle:
    """Ends a stream from any thread: the call of the moment, and that there be another."""

    def __init__(self) -> None:
        """Begin with no call."""
        self.is_closed = False
        self._call: Any = None

    def started(self, call: Any) -> None:  # noqa: ANN401 - grpc's call types are private
        """Take the call that the stream goes on with."""
        self._call = call
        if self.is_closed:
            call.cancel()

    def close(self) -> None:
        """End the stream."""
        self.is_closed = True
        if self._call is not None:
            self._call.cancel()


class Caller:
    """What every call of a client has in common."""

    def __init__(
        self, target: Target, policy: RetryPolicy, timeout: float, on_break: OnBreak
    ) -> None:
        """``timeout`` is the deadline of a unary call in seconds."""
        self._metadata = (("authorization", f"Bearer {target.token}"),) if target.token else ()
        self._policy = policy
        self._timeout = timeout
        self._on_break = on_break
        self._closed = False
        self._pauses = threading.Condition()

    def close(self) -> None:
        """Call nothing any more: the connection is about to be closed."""
        self._closed = True
        self.wake()

    def wake(self) -> None:
        """Let what waits for its next attempt see that it was closed."""
        with self._pauses:
            self._pauses.notify_all()

    def read(
        self,
        method: grpc.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        timeout: float | None,
    ) -> Response:
        """Make a call that changes nothing, and repeat it when the connection fails."""
        return self._unary(method, request, timeout, changes_nothing=True)

    def write(
        self,
        method: grpc.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        timeout: float | None,
    ) -> Response:
        """Make a call that writes: repeated where its outcome is certain.

        That is where the server says that it did nothing, and always under a
        request id.
        """
        repeatable = bool(getattr(request, "request_id", ""))
        return self._unary(method, request, timeout, changes_nothing=repeatable)

    def stream(
        self,
        method: grpc.UnaryStreamMultiCallable[Request, Response],
        place: Place[Request, Response],
        timeout: float | None,
        handle: Handle,
    ) -> Generator[Response, None, None]:
        """Stream responses, going on from ``place`` whenever the stream breaks.

        ``handle`` ends it. Raises CallError.
        """
        deadline = Deadline(timeout)
        backoff = Backoff(self._policy, deadline, is_live=place.is_live, on_break=self._on_break)
        while True:
            call = self._begin(method, place.request(), deadline)
            handle.started(call)
            try:
                for response in call:
                    place.advance(response)
                    backoff.progressed()
                    yield response
            except grpc.RpcError as error:
                failure = from_rpc_error(error)
                if _was_closed(error) or not _is_worth_another(failure, backoff):
                    raise failure from error
                if place.is_complete:
                    return
                self._wait(backoff, failure, lambda: handle.is_closed)
                if handle.is_closed:
                    return
                continue
            finally:
                call.cancel()
            if not place.goes_on():
                return

    def _unary(
        self,
        method: grpc.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        timeout: float | None,
        *,
        changes_nothing: bool,
    ) -> Response:
        deadline = Deadline(self._timeout if timeout is None else timeout)
        backoff = Backoff(self._policy, deadline)
        while True:
            try:
                return self._begin(method, request, deadline)
            except grpc.RpcError as error:
                failure = from_rpc_error(error)
                if not may_repeat(failure, changes_nothing=changes_nothing):
                    raise failure from error
                self._wait(backoff, failure, lambda: False)

    def _begin(self, method: Callable[..., Answer], request: Message, deadline: Deadline) -> Answer:
        """Make a call. Raises RpcError, or CallError when the client is closed."""
        try:
            return method(request, timeout=deadline.remaining(), metadata=self._metadata)
        except ValueError as error:
            # That is what a closed channel raises.
            if not self._closed:
                raise
            raise CallError(grpc.StatusCode.CANCELLED, "the client is closed") from error

    def _wait(self, backoff: Backoff, failure: CallError, is_over: Callable[[], bool]) -> None:
        """Wait for the next attempt, or until ``is_over``.

        Raises ``failure`` when there is to be none.
        """
        if not self._closed:
            seconds = backoff.pause_after(failure)
            with self._pauses:
                self._pauses.wait_for(lambda: self._closed or is_over(), seconds)
        if self._closed:
            raise failure


def _was_closed(error: grpc.RpcError) -> bool:
    return isinstance(error, grpc.Future) and error.cancelled()


def _is_worth_another(failure: CallError, backoff: Backoff) -> bool:
    if failure.is_broken_stream or failure.did_nothing:
        return True
    # A server that was started again may have to read a transcript first.
    return backoff.has_begun and failure.may_be_found_later


def new_request_id() -> str:
    """Make an id under which a write can be repeated (contract rule 8)."""
    return uuid.uuid4().hex
