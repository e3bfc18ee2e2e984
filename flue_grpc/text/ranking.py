"""Recency among near ties, before any limit (behaviour A3.4)."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import msgspec

from flue_grpc.limits import TIE_TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class Scored(msgspec.Struct, frozen=True, gc=False):
    """One match: bm25 (lower is better), its time in microseconds, its id."""

    score: float
    when: int
    id: int


def is_tie(anchor: float, score: float) -> bool:
    """Say whether ``score`` is within 20 % of the anchor, against their mean."""
    mean = (abs(anchor) + abs(score)) / 2
    return mean == 0 or abs(anchor - score) / mean <= TIE_TOLERANCE


def tie_pass(rows: Iterable[Scored], limit: int) -> Iterator[tuple[Scored, float]]:
    """Yield at most ``limit`` of ``rows``, newest first among near ties, each with its anchor.

    ``rows`` come best score first and are read only as far as the runs that are needed.
    At most ``limit`` rows of a run are held. Rows of one run are ordered by ``when``, then
    ``id``, both descending; its anchor is the best score in it.
    """
    run = _Run(limit)
    for row in rows:
        if run.anchor is not None and not is_tie(run.anchor, row.score):
            yield from run.ordered()
            limit -= len(run.best)
            if limit <= 0:
                return
            run = _Run(limit)
        run.add(row)
    yield from run.ordered()


def ranked_page(
    rank: Callable[[int], list[Scored]], limit: int, after: tuple[int, int] | None
) -> tuple[list[Scored], int]:
    """Return at most ``limit`` matches behind a place, and how many are before them.

    ``rank`` returns so many of the best matches, in order. ``after`` is the number of the
    last match that was given, from 1, and its id: every write shifts all scores a little,
    so the place is that match itself, or its number when it is gone.
    """
    wanted = limit if after is None else after[0] + limit
    while True:
        ranked = rank(wanted)
        start = 0 if after is None else _place(ranked, *after)
        if start + limit <= wanted or len(ranked) < wanted:
            return ranked[start : start + limit], start
        # The place has moved down, so as many more are needed.
        wanted = start + limit


def _place(ranked: list[Scored], count: int, last: int) -> int:
    for number, match in enumerate(ranked, 1):
        if match.id == last:
            return number
    return min(count, len(ranked))


class _Run:
    """The newest matches of one run of near ties."""

    def __init__(self, limit: int) -> None:
        self.anchor: float | None = None
        self.best: list[tuple[int, int, float]] = []
        self._limit = limit

    def add(self, row: Scored) -> None:
        if self.anchor is None:
            self.anchor = row.score
        entry = (row.when, row.id, row.score)
        if len(self.best) < self._limit:
            heapq.heappush(self.best, entry)
        else:
            heapq.heappushpop(self.best, entry)

    def ordered(self) -> Iterator[tuple[Scored, float]]:
        if self.anchor is None:
            return
        for when, number, score in sorted(self.best, reverse=True):
            yield Scored(score, when, number), self.anchor
