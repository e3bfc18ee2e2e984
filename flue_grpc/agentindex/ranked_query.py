"""Ranking matches of the RANKED index: exact, and about as dear as their scores alone.

FTS5 has no short way to the best of many matches: each must be scored, and sorting them
adds to that. So a small part of the index tells first how good a near tie of the best
must be at least, and then only such matches leave the database.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heappush, heappushpop
from typing import TYPE_CHECKING, Final, cast

from flue_grpc.agentindex.ranked_index import MESSAGE_BITS
from flue_grpc.agentindex.ranked_scope import NO_TIME
from flue_grpc.limits import RANKED_NEAR_ROWS, RANKED_OPEN_ROWS, RANKED_SAMPLE, TIE_TOLERANCE
from flue_grpc.text.ranking import Scored, is_tie, tie_pass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import apsw
    from apsw import SQLiteValue, SQLiteValues

    from flue_grpc.agentindex.ranked_scope import Ordinals, Scope

_SCORE: Final = "bm25(ranked_index)"
_ROW: Final = "ranked_index.rowid"
# A little below the worst score that ties with 1, so that rounding takes none away.
_NEAR: Final = (2 - TIE_TOLERANCE) / (2 + TIE_TOLERANCE) - 1e-6
_ROWS: Final = (RANKED_OPEN_ROWS, 32 * RANKED_OPEN_ROWS, -1)


class Ranking:
    """One MATCH expression over the rows of a scope, within the caller's transaction."""

    def __init__(
        self, db: apsw.Connection, expression: str, scope: Scope, ordinals: Ordinals
    ) -> None:
        """``ordinals`` has the sessions of all rows in ``scope``."""
        self._db = db
        self._ordinals = ordinals
        self._bindings: dict[str, SQLiteValue] = {
            "match": expression,
            "ordinals": scope.ordinals,
            "since": scope.since,
            "until": scope.until,
            "fill": scope.fill,
        }
        self._rows, self._messages = _conditions(scope)

    def best(self, count: int, accepts: Callable[[int], bool] | None = None) -> list[Scored]:
        """Return the best ``count`` matches, near ties newest first (behaviour A3.4).

        Their ids are rows. ``accepts`` judges rows further. May raise what it raises, and
        apsw.Error.
        """
        if accepts is None and (near := self._near_best(count)) is not None:
            return near
        rows = self._sorted()
        if accepts is not None:
            rows = (row for row in rows if accepts(self._ordinals.row(row.id)))
        return [
            Scored(match.score, match.when, self._ordinals.row(match.id))
            for match, _ in tie_pass(rows, count)
        ]

    def _near_best(self, count: int) -> list[Scored] | None:
        """Return what ``best`` does, None where the near ties of the best do not tell."""
        rows, floor = self._near()
        found: list[Scored] = []
        start = 0
        while start < len(rows) and len(found) < count:
            # All others score above the floor: too far only if the floor is.
            if is_tie(rows[start][0], floor):
                return None
            end = _run_end(rows, start)
            found += self._newest(rows[start:end], count - len(found))
            start = end
        return found if len(found) == count else None

    def _newest(self, run: list[tuple[float, int]], count: int) -> list[Scored]:
        """Return the newest rows of a run of (score, row), looking at few of their times."""
        bound, order = self._ordinals.newest, self._ordinals.order
        run.sort(key=lambda row: bound(row[1]), reverse=True)
        best: list[tuple[int, int, float, int]] = []
        for score, row in run:
            if len(best) == count and best[0][0] > bound(row):
                break
            entry = (self._time(row), order(row), score, row)
            if len(best) < count:
                heappush(best, entry)
            else:
                heappushpop(best, entry)
        return [Scored(score, when, row) for when, _, score, row in sorted(best, reverse=True)]

    def _time(self, row: int) -> int:
        ts = self._db.execute("select ts from ranked_messages where id = ?", (row,)).get
        return NO_TIME if ts is None else int(ts)

    def _near(self) -> tuple[list[tuple[float, int]], float]:
        """Return all (score, row) up to a floor below which no near tie of the best lies.

        In order; none where the sample does not tell, or where too many rows are near.
        """
        sample = self._ordinals.last - self._ordinals.last // RANKED_SAMPLE
        query = f"select {_SCORE} {self._source()} and {_ROW} >= :low order by 1 limit 1"
        best = self._db.execute(query, self._bindings | {"low": sample << MESSAGE_BITS}).get
        if not best:
            return [], 0.0
        floor = best * _NEAR
        query = f"select {_SCORE}, {_ROW} {self._source()} and {_SCORE} <= :floor limit :limit"
        bindings = self._bindings | {"floor": floor, "limit": RANKED_NEAR_ROWS}
        rows = cast("list[tuple[float, int]]", self._db.execute(query, bindings).fetchall())
        return (sorted(rows), floor) if len(rows) < RANKED_NEAR_ROWS else ([], 0.0)

    def _sorted(self) -> Iterator[Scored]:
        """Yield all rows, best first; few at first, for few are read."""
        given = 0
        query = (
            f"select best.score, coalesce(m.ts, {NO_TIME}), m.id from ("
            f"select {_SCORE} as score, {_ROW} as id {self._source()} "
            "order by score, id desc limit :limit"
            ") best join ranked_messages m on m.id = best.id order by best.score, best.id desc"
        )
        for limit in _ROWS:
            number = 0
            for number, row in enumerate(
                self._scored(self._db.execute(query, self._bindings | {"limit": limit})), start=1
            ):
                if number > given:
                    yield row
            if number != limit:
                return
            given = number

    def _source(self) -> str:
        """Return FROM and WHERE with as few tables as the scope needs."""
        if not self._messages:
            return f"from ranked_index where {self._rows}"
        return (
            f"from ranked_index cross join ranked_messages m on m.id = {_ROW} "
            f"where {self._rows} {self._messages}"
        )

    def _scored(self, rows: Iterable[SQLiteValues]) -> Iterator[Scored]:
        order = self._ordinals.order
        for score, ts, row in cast("Iterable[tuple[float, int, int]]", rows):
            yield Scored(score, ts, order(row))


def _run_end(rows: list[tuple[float, int]], start: int) -> int:
    """Return the end of the run of near ties that begins at ``start``."""
    anchor = rows[start][0]
    return bisect_right(rows, 0, start, key=lambda row: int(not is_tie(anchor, row[0])))


def _conditions(scope: Scope) -> tuple[str, str]:
    """Return what is asked of a row, and of its message; the latter may be empty."""
    rows = "ranked_index match :match"
    if scope.ordinals is not None:
        place = f"({_ROW} >> {MESSAGE_BITS}) + 1"
        rows += f" and substr(:ordinals, {place}, 1) = x'01'"
    messages = ""
    if scope.sorts:
        messages += f" and m.sort in ({', '.join(map(str, scope.sorts))})"
    if scope.since is not None:
        messages += " and m.ts >= :since"
    if scope.until is not None:
        messages += " and m.ts < :until"
    if scope.fill is not None:
        messages += " and m.fill <= :fill"
    return rows, messages
