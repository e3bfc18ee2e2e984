"""Ranking matches of the RANKED index: exact, and about as dear as their scores alone.

FTS5 has no short way to the best of many matches: each must be scored, and sorting them
adds to that. So a small part of the index tells first how good a near tie of the best
must be at least, and then only such matches leave the database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flue_grpc.agentindex.ranked_index import MESSAGE_BITS
from flue_grpc.limits import RANKED_NEAR_ROWS, RANKED_OPEN_ROWS, RANKED_SAMPLE, TIE_TOLERANCE
from flue_grpc.text.ranking import Scored, is_tie, tie_pass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import apsw
    from apsw import SQLiteValue

    from flue_grpc.agentindex.ranked_scope import Ordinals, Scope

_NO_TIME: Final = -(2**62)  # behind all that have one
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

        Their ids are rows.
        ``accepts`` judges rows further. May raise what it raises, and apsw.Error.
        """
        near = self._near()
        if near is not None:
            rows, floor = near
            ranked = list(tie_pass(_accepted(rows, self._ordinals, accepts), count))
            # Whatever else there is scores above the floor: too far for the last run.
            if len(ranked) == count and not is_tie(ranked[-1][1], floor):
                return self._with_rows(ranked)
        every = _accepted(self._sorted(), self._ordinals, accepts)
        return self._with_rows(tie_pass(every, count))

    def _with_rows(self, ranked: Iterable[tuple[Scored, float]]) -> list[Scored]:
        return [
            Scored(match.score, match.when, self._ordinals.row(match.id)) for match, _ in ranked
        ]

    def _near(self) -> tuple[list[Scored], float] | None:
        """Return all rows up to a floor below which no near tie of the best lies, in order.

        None where the sample does not tell, or where too many rows are near.
        """
        sample = self._ordinals.last - self._ordinals.last // RANKED_SAMPLE
        query = (
            f"select bm25(ranked_index) {self._source()} and ranked_index.rowid >= :low "
            "order by 1 limit 1"
        )
        best = self._db.execute(query, self._bindings | {"low": sample << MESSAGE_BITS}).get
        if not best:
            return None
        floor = best * _NEAR
        query = (
            "select bm25(ranked_index), m.ts, m.id from ranked_index "
            "cross join ranked_messages m on m.id = ranked_index.rowid "
            f"where {self._rows} and bm25(ranked_index) <= :floor {self._messages} limit :limit"
        )
        bindings = self._bindings | {"floor": floor, "limit": RANKED_NEAR_ROWS}
        rows = list(self._scored(query, bindings))
        if len(rows) >= RANKED_NEAR_ROWS:
            return None
        rows.sort(key=_score)
        return rows, floor

    def _sorted(self) -> Iterator[Scored]:
        """Yield all rows, best first; few at first, for few are read."""
        given = 0
        query = (
            "select best.score, m.ts, m.id from ("
            f"select bm25(ranked_index) as score, ranked_index.rowid as id {self._source()} "
            "order by score, id desc limit :limit"
            ") best join ranked_messages m on m.id = best.id order by best.score, best.id desc"
        )
        for limit in _ROWS:
            number = 0
            for number, row in enumerate(
                self._scored(query, self._bindings | {"limit": limit}), start=1
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
            "from ranked_index cross join ranked_messages m on m.id = ranked_index.rowid "
            f"where {self._rows} {self._messages}"
        )

    def _scored(self, query: str, bindings: Mapping[str, SQLiteValue]) -> Iterator[Scored]:
        order = self._ordinals.order
        for score, ts, row in self._db.execute(query, bindings):
            yield Scored(score, _NO_TIME if ts is None else ts, order(row))


def _conditions(scope: Scope) -> tuple[str, str]:
    """Return what is asked of a row, and of its message; the latter may be empty."""
    rows = "ranked_index match :match"
    if scope.ordinals is not None:
        place = f"(ranked_index.rowid >> {MESSAGE_BITS}) + 1"
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


def _accepted(
    rows: Iterable[Scored], ordinals: Ordinals, accepts: Callable[[int], bool] | None
) -> Iterable[Scored]:
    if accepts is None:
        return rows
    return (row for row in rows if accepts(ordinals.row(row.id)))


def _score(row: Scored) -> float:
    return row.score
