"""What both searches share: from a query to ranked places (behaviour A3.2, A3.4)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.cancel import Cancel
from flue_grpc.listing import Cursor
from flue_grpc.store.connections import Row, first_row
from flue_grpc.text.match import Verifier, lookup
from flue_grpc.text.query import parse_plain
from flue_grpc.text.ranking import Scored, tie_pass

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw


_BEFORE: Final = 16  # ids in a token: whole pages are rarely deleted, and it stays short


class SearchCursor(Cursor, frozen=True, array_like=True):
    """The place after the ``count``-th match, whose id is ``id``.

    ``moment`` marks what was there at the first response: the greatest message
    id, or the latest time of memory. ``before`` are the ids of some matches just
    before it, the last one last: it is behind those when it was deleted itself.
    """

    moment: int
    count: int
    id: int
    before: tuple[int, ...] = ()


class Search(msgspec.Struct, frozen=True):
    """One ranked statement.

    ``sql`` yields (score, when, id), best score first, and binds the MATCH
    expression first; ``content`` reads the text of an id. ``cancel`` is asked
    before each piece of a text that has to be verified.
    """

    sql: str
    bindings: Row
    content: str
    cancel: Cancel


class Plan(msgspec.Struct, frozen=True):
    """What a query looks up, and what it leaves to verify in the text."""

    expression: str
    verifier: Verifier | None


def plan(query: str) -> Plan | None:
    """Parse a query of plain words; None when nothing can match.

    Raises EmptyQueryError when it is blank, QueryTooLongError above 8 KiB.
    """
    parsed = parse_plain(query)
    if parsed.matches_nothing:
        return None
    looked_up = lookup(parsed)
    return Plan(looked_up.expression, looked_up.verifier)


class Match(msgspec.Struct, frozen=True, gc=False):
    """A match and its number in the ranking, from 1."""

    number: int
    scored: Scored


class Given:
    """Which matches a call has given, and the place after each of them."""

    __slots__ = ("_last", "_moment", "after", "taken")

    def __init__(self, moment: int, after: SearchCursor | None) -> None:
        """Begin behind ``after``, the last match of an earlier call."""
        self.after = after
        self.taken: set[int] = set()
        self._moment = moment
        self._last = deque(() if after is None else (*after.before, after.id), _BEFORE)

    def cursor(self, match: Match) -> SearchCursor:
        """Note that a match is given, and return the place after it."""
        number = match.scored.id
        place = SearchCursor(self._moment, match.number, number, tuple(self._last))
        self._last.append(number)
        return place


def matches(
    connection: apsw.Connection, planned: Plan, search: Search, limit: int, given: Given
) -> list[Match]:
    """Rank, near ties newest first; return the next ``limit`` matches, fewer when no more are left.

    Every write shifts all scores a little, so the place is behind the last match of
    the earlier call that is still there, and none that this call has taken comes
    again. Runs within the caller's transaction.
    """
    after = given.after
    wanted = limit + len(given.taken) + (0 if after is None else after.count)
    while True:
        ranked = _ranked(connection, planned, search, wanted)
        start = 0 if after is None else _place(ranked, after)
        found = [
            Match(number, match)
            for number, match in enumerate(ranked[start:], start + 1)
            if match.id not in given.taken
        ]
        if len(found) >= limit or len(ranked) < wanted:
            return found[:limit]
        # The place has moved down, so as many more are needed.
        wanted += limit - len(found)


def _place(ranked: list[Scored], after: SearchCursor) -> int:
    numbers = {match.id: number for number, match in enumerate(ranked, 1)}
    for last in (after.id, *reversed(after.before)):
        if last in numbers:
            return numbers[last]
    return min(after.count, len(ranked))


def _ranked(connection: apsw.Connection, planned: Plan, search: Search, limit: int) -> list[Scored]:
    rows = connection.execute(search.sql, (planned.expression, *search.bindings))
    scored: Iterator[Scored] = (Scored(*row) for row in rows)
    if planned.verifier is not None:
        scored = _verified(connection, scored, planned.verifier, search)
    ranked = [match for match, _ in tie_pass(scored, limit)]
    rows.close(force=True)
    return ranked


def _verified(
    connection: apsw.Connection, scored: Iterator[Scored], verifier: Verifier, search: Search
) -> Iterator[Scored]:
    for match in scored:
        row = first_row(connection, search.content, (match.id,))
        # Verifying takes far longer than the SQL that is interrupted by itself.
        if row is not None and verifier.accepts(row[0], search.cancel):
            yield match
