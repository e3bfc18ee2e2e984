"""Making calls: credentials, deadlines, repeats and resumes in one place."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import grpc

from flue_grpc.client.failures import from_rpc_error
from flue_grpc.client.retry import Backoff, Deadline, RetryPolicy, may_repeat

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from google.protobuf.message import Message

    from flue_grpc.client.failures import CallError
    from flue_grpc.client.retry import OnBreak
    from flue_grpc.client.target import Target

Request = TypeVar("Request", bound="Message")
Response = TypeVar("Response", bound="Message")
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

    def close(self) -> None:
        """Repeat nothing any more: the connection is about to be closed."""
        self._closed = True

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
        started: Callable[[Any], None],
    ) -> Generator[Response, None, None]:
        """Stream responses, going on from ``place`` whenever the stream breaks.

        ``started`` is given each underlying call, to cancel it. Raises CallError.
        """
        deadline = Deadline(timeout)
        backoff = Backoff(self._policy, deadline, is_live=place.is_live, on_break=self._on_break)
        while True:
            call = method(place.request(), timeout=deadline.remaining(), metadata=self._metadata)
            started(call)
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
                self._wait(backoff, failure)
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
                return method(request, timeout=deadline.remaining(), metadata=self._metadata)
            except grpc.RpcError as error:
                failure = from_rpc_error(error)
                if not may_repeat(failure, changes_nothing=changes_nothing):
                    raise failure from error
                self._wait(backoff, failure)

    def _wait(self, backoff: Backoff, failure: CallError) -> None:
        """Wait for the next attempt; raises ``failure`` when there is to be none."""
        if not self._closed:
            backoff.wait(failure)
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
