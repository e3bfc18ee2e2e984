"""SearchMemory (behaviour A4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flue_grpc import limits
from flue_grpc.listing import Placed
from flue_grpc.store import memory, ranked
from flue_grpc.store.connections import first_row, first_value
from flue_grpc.store.ranked import Given
from flue_grpc.store.text_index import MEMORY_INDEX
from flue_grpc.transactions import transaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import apsw

    from flue_grpc.cancel import Cancel
    from flue_grpc.store.ranked import Match, SearchCursor
    from flue_grpc.store.readers import Readers
    from flue_grpc.store.values import MemoryEntry, MemoryQuery

_SEARCH: Final = f"""SELECT bm25({MEMORY_INDEX.name}) AS score, m.updated_at, m.id
    FROM {MEMORY_INDEX.name} CROSS JOIN memory_entries AS m ON m.id = {MEMORY_INDEX.name}.rowid
    WHERE {MEMORY_INDEX.name} MATCH ? AND {memory.UNCHANGED}
        AND m.scope IN (SELECT value FROM json_each(?))
    ORDER BY score"""
_CONTENT: Final = "SELECT content FROM memory_entries WHERE id = ?"
_ENTRY: Final = f"SELECT {memory.COLUMNS} FROM memory_entries WHERE id = ? AND {memory.UNCHANGED}"
_PAGE: Final = 32


def search_memory(
    readers: Readers, query: MemoryQuery, after: SearchCursor | None, limit: int, cancel: Cancel
) -> Iterator[Placed[MemoryEntry]]:
    """Yield at most ``limit`` matching entries of the scopes, best first.

    Near ties are ordered by ``updated_at``, newest first. Entries that change
    after the first response are left out. Raises as search_messages does.
    """
    planned = ranked.plan(query.query)
    if planned is None:
        return
    moment = _now(readers, cancel) if after is None else after.moment
    search = ranked.Search(_SEARCH, (moment, memory.scopes_text(query.scopes)), _CONTENT, cancel)
    given, left, is_all = Given(moment, after), limit, False
    while left and not is_all:
        with readers.reading(cancel) as connection, transaction(connection):
            matches = ranked.matches(connection, planned, search, left, given)
        # Of those some may be gone before they are loaded; then others take their place.
        is_all = len(matches) < left
        while matches:
            with readers.reading(cancel) as connection:
                entries, taken = _load(connection, matches[:_PAGE], moment)
            given.taken.update(match.scored.id for match in matches[:taken])
            for match, entry in entries:
                yield Placed(entry, given.cursor(match))
            left -= len(entries)
            del matches[:taken]


def _now(readers: Readers, cancel: Cancel) -> int:
    with readers.reading(cancel) as connection:
        moment: int = first_value(connection, "SELECT last FROM store_clock")
    return moment


def _load(
    connection: apsw.Connection, matches: Sequence[Match], moment: int
) -> tuple[list[tuple[Match, MemoryEntry]], int]:
    """Load the first of ``matches``, those that are still there; say how many were taken."""
    loaded: list[tuple[Match, MemoryEntry]] = []
    total = taken = 0
    for match in matches:
        taken += 1
        row = first_row(connection, _ENTRY, (match.scored.id, moment))
        if row is None:
            continue
        entry = memory.entry(row)
        loaded.append((match, entry))
        total += len(entry.scope) + len(entry.content)
        if total >= limits.READ_BATCH_BYTES:
            break
    return loaded, taken
