"""What both searches share: from a query to ranked places (behaviour A3.2, A3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from flue_grpc.cancel import Cancel
from flue_grpc.listing import Cursor
from flue_grpc.store.connections import Row, first_row
from flue_grpc.text.match import Verifier, lookup
from flue_grpc.text.query import parse_plain
from flue_grpc.text.ranking import Scored, ranked_page, tie_pass

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw


class SearchCursor(Cursor, frozen=True, array_like=True):
    """The place after the ``count``-th match, whose id is ``id``.

    ``moment`` marks what was there at the first response: the greatest message
    id, or the latest time of memory.
    """

    moment: int
    count: int
    id: int


class Search(msgspec.Struct, frozen=True):
    """One ranked statement.

    ``sql`` yields (score, when, id), best score first, and binds the MATCH
    expression first; ``content`` reads the text of an id. ``cancel`` is asked
    before each text that has to be verified.
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


def matches(
    connection: apsw.Connection,
    planned: Plan,
    search: Search,
    limit: int,
    after: SearchCursor | None,
) -> tuple[list[Scored], int]:
    """Rank, near ties newest first; return at most ``limit`` matches, and how many are before.

    Runs within the caller's transaction.
    """
    return ranked_page(
        lambda count: _ranked(connection, planned, search, count),
        limit,
        None if after is None else (after.count, after.id),
    )


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
        # Verifying takes far longer than the SQL that is interrupted by itself.
        search.cancel.check()
        row = first_row(connection, search.content, (match.id,))
        if row is not None and verifier.accepts(row[0]):
            yield match
