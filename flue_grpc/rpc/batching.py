"""Groups the items of a list into responses (contract rule 1).

The first response is small and leaves as soon as its items are there, unless the
limit is low and the rest is there as well; later ones grow toward 64 KiB while they stay small and quick, at most twofold, and
halve when they come out large. A response passes 1 MiB only with a single item in it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from flue_grpc import limits
from flue_grpc.listing import Pause, Placed, Stop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flue_grpc.listing import Cursor

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
R = TypeVar("R")


class Items(Protocol):
    """The repeated field of a response that holds the items."""

    def __len__(self) -> int: ...
    def __delitem__(self, index: int) -> None: ...


class AddItem(Protocol[T_contra]):
    """Appends an item to the field in place, which upb does fastest."""

    def __call__(self, items: Any, item: T_contra, /) -> int:  # noqa: ANN401  (one class per message)
        """Return an upper bound of the item's serialised size in bytes."""


@dataclass(frozen=True, slots=True)
class Shape(Generic[T, R]):
    """How items of a list become a response; ``items`` gets its repeated field.

    ``reports_progress``: a scan that finds nothing for a while sends empty
    responses that say how far it is. There a pause without a cursor only tells
    how far it is, since it is no place to go on from.
    """

    response: Callable[[], R]
    items: Callable[[R], Items]
    add: AddItem[T]
    reports_progress: bool = False


@dataclass(frozen=True, slots=True)
class Batch(Generic[R]):
    """One response, but for what its service adds.

    ``cursor`` is the place after it, None when nothing is left of the list.
    ``bytes_scanned`` is what the list told last.
    """

    response: R
    cursor: Cursor | None
    is_last: bool
    bytes_scanned: int


def batches(
    listing: Iterator[Placed[T] | Pause | Stop],
    shape: Shape[T, R],
    limit: int = 0,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Batch[R]]:
    """Yield the list in responses, at least one; ``limit`` 0 is all of it.

    Looks one item ahead, so that the last response alone has no cursor, and that
    only when nothing is left. Closes the list when it is done or closed itself.
    """
    filling = _Filling(shape, limit, clock)
    with ExitStack() as stack:
        if isinstance(listing, Generator):
            stack.callback(listing.close)
        for step in listing:
            if isinstance(step, Placed):
                if filling.is_full or not filling.add(step.item, step.cursor):
                    is_last = filling.is_at_limit
                    yield filling.take(is_last=is_last)
                    if is_last:
                        return
                    filling.begin()
                    filling.add(step.item, step.cursor)
            elif isinstance(step, Stop):
                yield filling.stop(step)
                return
            elif filling.pause(step):
                yield filling.take()
                filling.begin()
        yield filling.end()


class _Filling(Generic[T, R]):
    """The response being filled, and how large the next one may be."""

    __slots__ = (
        "_add",
        "_bytes",
        "_clock",
        "_cursor",
        "_items",
        "_left",
        "_response",
        "_room",
        "_scanned",
        "_shape",
        "_since",
        "_target",
        "is_full",
    )

    def __init__(self, shape: Shape[T, R], limit: int, clock: Callable[[], float]) -> None:
        self._shape = shape
        self._add = shape.add
        self._clock = clock
        self._left = limit or sys.maxsize
        self._target = limits.BATCH_START_ITEMS
        self._cursor: Cursor | None = None
        self._scanned = 0
        self.begin()

    def begin(self) -> None:
        """Start the next response; its time to fill counts from here."""
        self._response = self._shape.response()
        self._items = self._shape.items(self._response)
        self._bytes = 0
        self._room = self._fitting()
        self._since = self._clock()
        self.is_full = self.is_at_limit

    def _more_at_hand(self) -> int:
        """Let a list that is short and comes at once have a single response."""
        rest = min(self._left - len(self._items), limits.BATCH_START_ITEMS)
        is_short = self._left <= limits.BATCH_SHORT_ITEMS
        if rest and is_short and self._target == limits.BATCH_START_ITEMS:
            return rest if self._clock() - self._since <= limits.BATCH_AT_HAND_SECONDS else 0
        return 0

    def _fitting(self) -> int:
        is_quick = self._target > limits.BATCH_START_ITEMS
        # A response costs about as much as fifty items: none for a small rest.
        reach = 2 * self._target if is_quick else self._target
        return self._left if self._left <= reach else self._target

    @property
    def is_at_limit(self) -> bool:
        """Whether the call may have no more items."""
        return len(self._items) == self._left

    def add(self, item: T, cursor: Cursor) -> bool:
        """Add an item; False when it would pass 1 MiB and has to come in the next response."""
        total = self._bytes + self._add(self._items, item)
        if total >= limits.BATCH_TARGET_BYTES:
            if total > limits.BATCH_MAX_BYTES and len(self._items) > 1:
                del self._items[-1]
                return False
            self.is_full = True
        self._bytes = total
        self._cursor = cursor
        self._room -= 1
        if not self._room:
            self._room = self._more_at_hand()
            self.is_full = self.is_full or not self._room
        return True

    def pause(self, pause: Pause) -> bool:
        """Take a pause in; True when a response should leave now."""
        self._scanned = pause.bytes_scanned
        if not self._shape.reports_progress:
            return len(self._items) > 0
        if pause.cursor is None:
            return False
        self._cursor = pause.cursor
        if len(self._items):
            return True
        return self._clock() - self._since >= limits.PROGRESS_SECONDS

    def take(self, *, is_last: bool = False) -> Batch[R]:
        """Hand over what is held; the size of the next response follows from it."""
        self._adapt()
        self._left -= len(self._items)
        return Batch(self._response, self._cursor, is_last, self._scanned)

    def stop(self, stop: Stop) -> Batch[R]:
        """Hand over the last response of a list that goes on elsewhere."""
        return Batch(self._response, stop.cursor, is_last=True, bytes_scanned=stop.bytes_scanned)

    def end(self) -> Batch[R]:
        """Hand over the last response of a list of which nothing is left."""
        return Batch(self._response, None, is_last=True, bytes_scanned=self._scanned)

    def _adapt(self) -> None:
        if self._bytes > 2 * limits.BATCH_TARGET_BYTES:
            self._target = max(1, self._target // 2)
            return
        is_small = self._bytes < limits.BATCH_TARGET_BYTES
        is_quick = self._clock() - self._since <= limits.BATCH_QUICK_SECONDS
        if self.is_full and is_small and is_quick:
            fitting = self._target * limits.BATCH_TARGET_BYTES // max(self._bytes, 1)
            self._target = min(self._target * 2, fitting, limits.BATCH_MAX_ITEMS)
