"""Ranking matches of the RANKED index: exact, and about as dear as their scores alone.

FTS5 has no short way to the best of many matches: each must be scored, and sorting them
adds to that. So a small part of the index tells first how good a near tie of the best
must be at least, and then only such matches leave the database.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from heapq import heappush, heappushpop
from operator import itemgetter
from typing import TYPE_CHECKING, Final, cast

from flue_grpc.agentindex.damage import as_written
from flue_grpc.agentindex.ranked_index import MESSAGE_BITS
from flue_grpc.agentindex.ranked_scope import NO_TIME
from flue_grpc.limits import (
    RANKED_HALVES_SAMPLE,
    RANKED_NEAR_ROWS,
    RANKED_OPEN_ROWS,
    RANKED_SAMPLE,
    TIE_TOLERANCE,
)
from flue_grpc.text.ranking import Scored, is_tie, tie_pass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import apsw
    from apsw import SQLiteValue, SQLiteValues

    from flue_grpc.agentindex.ranked_reading import Halves
    from flue_grpc.agentindex.ranked_scope import Ordinals, Scope

_SCORE: Final = "bm25(ranked_index)"
_ROW: Final = "ranked_index.rowid"
# A little below the worst score that ties with 1, so that rounding takes none away.
_NEAR: Final = (2 - TIE_TOLERANCE) / (2 + TIE_TOLERANCE) - 1e-6
_LAST_ROW: Final = 2**63 - 1
_ROWS: Final = (RANKED_OPEN_ROWS, 32 * RANKED_OPEN_ROWS, -1)


class Ranking:
    """One MATCH expression over the rows of a scope, within the caller's transaction."""

    def __init__(
        self,
        db: apsw.Connection,
        halves: Halves,
        expression: str,
        scope: Scope,
        ordinals: Ordinals,
    ) -> None:
        """``ordinals`` has the sessions of all rows in ``scope``, ``halves`` asks at ``db``'s moment."""
        self._db = db
        self._halves = halves
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
        if accepts is None:
            with as_written():
                near = self._near_best(count)
            if near is not None:
                return near
        rows = self._sorted()
        if accepts is not None:
            rows = (row for row in rows if accepts(self._ordinals.row(row.id)))
        return [
            Scored(match.score, match.when, self._ordinals.row(match.id))
            for match, _ in tie_pass(rows, count)
        ]

    def _near_best(self, count: int) -> list[Scored] | None:
        """Return what ``best`` does, None where too many matches are near ties of the best."""
        score, number = self._sampled()
        for floor in _floors(score, number):
            rows = self._near(floor, number)
            if rows is None:
                return None
            if (best := self._best_of(rows, floor, count)) is not None:
                return best
        return None

    def _best_of(
        self, rows: list[tuple[float, int]], floor: float, count: int
    ) -> list[Scored] | None:
        """Return the best of all rows up to ``floor``, None where those above are needed too."""
        found: list[Scored] = []
        start = 0
        while start < len(rows) and len(found) < count:
            # All others score above the floor: too far only if the floor is.
            if is_tie(rows[start][0], floor):
                return None
            end = _run_end(rows, start)
            found += self._newest(rows[start:end], count - len(found))
            start = end
        return found if len(found) == count or not floor else None

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

    def _sampled(self) -> tuple[float, int]:
        """Return the best score in a small part of the index, or 0, and how many match there."""
        low = self._ordinals.last - self._ordinals.last // RANKED_SAMPLE
        query = (
            f"with sample(score) as materialized (select {_SCORE} {self._source()} "
            f"and {_ROW} >= :low) select coalesce(min(score), 0.0), count(*) from sample"
        )
        bindings = self._bindings | {"low": low << MESSAGE_BITS}
        ((score, number),) = self._db.execute(query, bindings).fetchall()
        return cast("float", score), cast("int", number)

    def _near(self, floor: float, sampled: int) -> list[tuple[float, int]] | None:
        """Return all (score, row) up to ``floor``, in order; None when there are too many.

        ``sampled`` is how many matches the sample has: many are asked for in halves.
        """
        query = (
            f"select {_SCORE}, {_ROW} {self._source()} and {_SCORE} <= :floor "
            f"and {_ROW} between :low and :high order by 1 limit :limit"
        )
        bindings = self._bindings | {"floor": floor, "limit": RANKED_NEAR_ROWS}

        def ask(low: int, high: int, db: apsw.Connection) -> list[tuple[float, int]]:
            rows = db.execute(query, bindings | {"low": low, "high": high}).fetchall()
            return cast("list[tuple[float, int]]", rows)

        middle = self._ordinals.middle << MESSAGE_BITS
        if sampled >= RANKED_HALVES_SAMPLE:
            lower, upper = partial(ask, 0, middle - 1), partial(ask, middle, _LAST_ROW)
            rows = self._halves.both(self._db, lower, upper)
        else:
            rows = ask(0, _LAST_ROW, self._db)
        return sorted(rows, key=itemgetter(0)) if len(rows) < RANKED_NEAR_ROWS else None

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
        with as_written():
            for score, ts, row in cast("Iterable[tuple[float, int, int]]", rows):
                yield Scored(score, int(ts), order(row))


def _floors(score: float, number: int) -> Iterator[float]:
    """Yield the scores up to which the best may be looked for, given what a sample has.

    Every score is below 0, which is no floor at all.
    """
    if score:
        yield score * _NEAR
    yield score * _NEAR**2 if number * RANKED_SAMPLE >= RANKED_NEAR_ROWS else 0.0


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
