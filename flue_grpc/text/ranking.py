"""Recency among near ties, before any limit (behaviour A3.4)."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import msgspec

from flue_grpc.limits import TIE_TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Scored(msgspec.Struct, frozen=True, gc=False):
    """One match: bm25 (lower is better), its time in microseconds, its id."""

    score: float
    when: int
    id: int


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Where a ranked list stands: the run's anchor score, and the last match given of it."""

    anchor: float
    when: int
    id: int


def is_tie(anchor: float, score: float) -> bool:
    """Say whether ``score`` is within 20 % of the anchor, against their mean."""
    mean = (abs(anchor) + abs(score)) / 2
    return mean == 0 or abs(anchor - score) / mean <= TIE_TOLERANCE


def tie_pass(
    rows: Iterable[Scored], limit: int, after: Place | None = None
) -> Iterator[tuple[Scored, Place]]:
    """Yield at most ``limit`` of ``rows``, each with its place, newest first among near ties.

    ``rows`` come best score first and are read only as far as the runs that are needed.
    With ``after``, the list goes on behind that place. At most ``limit`` rows of a run are
    held. Rows of one run are ordered by ``when``, then ``id``, both descending.
    """
    run = _Run(limit, after)
    for row in rows:
        if after is not None and row.score < after.anchor:
            continue
        if run.anchor is not None and not is_tie(run.anchor, row.score):
            yield from run.ordered()
            limit -= len(run.best)
            if limit <= 0:
                return
            run = _Run(limit, None)
        run.add(row)
    yield from run.ordered()


class _Run:
    """The best matches of one run; those at or before ``after`` are left out."""

    def __init__(self, limit: int, after: Place | None) -> None:
        self.anchor: float | None = None
        self.best: list[tuple[int, int, float]] = []
        self._limit = limit
        self._after = after
        self._bound: tuple[int, int] | None = None

    def add(self, row: Scored) -> None:
        if self.anchor is None:
            self.anchor = row.score
            if self._after is not None and is_tie(self._after.anchor, row.score):
                self._bound = (self._after.when, self._after.id)
        if self._bound is not None and (row.when, row.id) >= self._bound:
            return
        entry = (row.when, row.id, row.score)
        if len(self.best) < self._limit:
            heapq.heappush(self.best, entry)
        else:
            heapq.heappushpop(self.best, entry)

    def ordered(self) -> Iterator[tuple[Scored, Place]]:
        if self.anchor is None:
            return
        for when, number, score in sorted(self.best, reverse=True):
            yield Scored(score, when, number), Place(self.anchor, when, number)
