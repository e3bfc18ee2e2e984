"""Live streams: they wait for events, and end with the call or the server (contract rule 9)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

from flue_grpc.errors import CancelledError, DrainingError
from flue_grpc.listing import Cursor, Placed
from flue_grpc.rpc.batching import batches
from flue_grpc.rpc.calls import ContextCancel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from threading import Event

    import grpc

    from flue_grpc.cancel import Cancel
    from flue_grpc.rpc.batching import Shape
    from flue_grpc.rpc.interceptors.drain import Drain
    from flue_grpc.rpc.page_token import PageTokens


class LiveCancel(ContextCancel):
    """The domain's ``Cancel`` on a live stream, which a shutdown ends too."""

    __slots__ = ("_call", "_drain")

    def __init__(self, context: grpc.ServicerContext, drain: Drain) -> None:
        super().__init__(context)
        self._call = context
        self._drain = drain

    def check(self) -> None:
        """Raise CancelledError or DeadlineError, or DrainingError at shutdown."""
        super().check()
        if self._drain.is_draining:
            raise DrainingError("the server is shutting down")

    @contextmanager
    def waking(self, event: Event) -> Iterator[None]:
        """Have ``event`` set when the call ends or the server shuts down."""
        if not self._call.add_callback(event.set):
            raise CancelledError("the call was cancelled")
        undo = self._drain.subscribe(event.set)
        try:
            yield
        finally:
            undo()


class LiveResponse(Protocol):
    """A response of a followed list."""

    next_page_token: str
    caught_up: bool


T = TypeVar("T")
P = TypeVar("P")
R = TypeVar("R", bound=LiveResponse)


class Follow(Protocol[T]):
    """A list that goes on; see store.following.Follow."""

    @property
    def place(self) -> Cursor:
        """The place behind the last item that was pulled."""

    def news(self, cancel: Cancel, /) -> Iterator[Placed[T]]:
        """Yield the items behind the place."""

    def wait(self, cancel: Cancel, /) -> bool:
        """Wait for news; False when it is time for a heartbeat."""


def live_pages(
    follow: Follow[T], shape: Shape[T, R], limit: int, tokens: PageTokens, cancel: Cancel
) -> Iterator[R]:
    """Send the backlog, a mark that the present is reached, then news and heartbeats.

    Ends when ``limit`` items were sent, 0 for never.
    """
    left, caught_up = limit, False
    while True:
        for batch in batches(follow.news(cancel), shape, left):
            response = batch.response
            count = len(shape.items(response))
            if count:
                response.next_page_token = tokens.encode(batch.cursor or follow.place)
                response.caught_up = caught_up
                if limit:
                    left -= count
                yield response
            if limit and left <= 0:
                return
        if not caught_up or not follow.wait(cancel):
            caught_up = True
            beat = shape.response()
            beat.next_page_token, beat.caught_up = tokens.encode(follow.place), True
            yield beat


class _Nowhere(Cursor, frozen=True):
    """The place of what has none."""


def grouped(items: Iterable[T], shape: Shape[T, P]) -> Iterator[P]:
    """Group items that have no place into responses, none of them empty."""
    placed = (Placed(item, _Nowhere()) for item in items)
    for batch in batches(placed, shape):
        if len(shape.items(batch.response)):
            yield batch.response
