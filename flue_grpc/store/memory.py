"""Memory entries: the statements of their writes and reads (behaviour A4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc import limits
from flue_grpc.errors import (
    BadCombinationError,
    EmptyScopeError,
    MemoryNotFoundError,
    ValueTooLargeError,
)
from flue_grpc.listing import Cursor, Placed
from flue_grpc.store.connections import first_value
from flue_grpc.store.paging import read_batch
from flue_grpc.store.text_index import MEMORY_INDEX
from flue_grpc.store.values import EntryDraft, MemoryChange, MemoryEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw

    from flue_grpc.cancel import Cancel
    from flue_grpc.store.batch import Batch
    from flue_grpc.store.connections import Row
    from flue_grpc.store.readers import Readers

COLUMNS: Final = "id, scope, content, pinned, created_at, updated_at"
# Since a moment. What an import or adoption brought may be later than the Store's clock.
UNCHANGED: Final = "(updated_at <= ? OR updated_at > (SELECT last FROM store_clock))"
_ENCODER: Final = msgspec.json.Encoder()
_IN_SCOPES: Final = "scope IN (SELECT value FROM json_each(?))"


class MemoryCursor(Cursor, frozen=True, array_like=True):
    """The place after an entry; ``moment`` is the latest time at the first response."""

    moment: int
    pinned: bool
    updated_at: int
    id: int


class NewEntry(msgspec.Struct, frozen=True):
    """The body of WriteMemoryEntry."""

    draft: EntryDraft

    def make(self, batch: Batch) -> MemoryEntry:
        """Insert it."""
        now = batch.now()
        draft = self.draft
        number = batch.insert(
            """INSERT INTO memory_entries (scope, pinned, created_at, updated_at, content)
                VALUES (?, ?, ?, ?, ?)""",
            (draft.scope, int(draft.pinned), now, now, draft.content),
        )
        MEMORY_INDEX.add(batch.connection, number, draft.content)
        return MemoryEntry(number, draft.scope, draft.content, draft.pinned, now, now)

    def name(self, made: MemoryEntry) -> str:
        """Return the entry's id."""
        return str(made.id)

    def find(self, batch: Batch, name: str) -> MemoryEntry:
        """Return the entry as it is now."""
        row = batch.row(f"SELECT {COLUMNS} FROM memory_entries WHERE id = ?", (int(name),))
        return found(int(name), row)


def check_draft(draft: EntryDraft) -> None:
    """Raise EmptyScopeError without a scope.

    Raises ValueTooLargeError over 4 KiB of scope or 1 MiB of content, in UTF-8.
    """
    if not draft.scope:
        raise EmptyScopeError("a memory entry has a scope", "scope")
    if len(draft.scope.encode()) > limits.SCOPE_BYTES:
        raise ValueTooLargeError(
            "the scope is too large", "scope", {"limit": str(limits.SCOPE_BYTES)}
        )
    _check_content(draft.content)


def _check_content(content: str) -> None:
    """Raise ValueTooLargeError over 1 MiB in UTF-8."""
    if len(content.encode()) > limits.MEMORY_CONTENT_BYTES:
        raise ValueTooLargeError(
            "the content is too large", "content", {"limit": str(limits.MEMORY_CONTENT_BYTES)}
        )


def check_change(change: MemoryChange) -> None:
    """Raise BadCombinationError when there is nothing to update, ValueTooLargeError."""
    if change.content is None and change.pinned is None:
        raise BadCombinationError("there is nothing to update: neither content nor pinned is set")
    if change.content is not None:
        _check_content(change.content)


def entry(row: Row) -> MemoryEntry:
    """Make an entry of a row of COLUMNS."""
    number, scope, content, pinned, created_at, updated_at = row
    return MemoryEntry(number, scope, content, pinned != 0, created_at, updated_at)


def found(number: int, row: Row | None) -> MemoryEntry:
    """Make an entry of its row; raises MemoryNotFoundError when there is none."""
    if row is None:
        raise MemoryNotFoundError("there is no such memory entry", {"id": str(number)})
    return entry(row)


def update(batch: Batch, number: int, change: MemoryChange) -> MemoryEntry:
    """Set what is given, touch ``updated_at``; raises MemoryNotFoundError."""
    pinned = None if change.pinned is None else int(change.pinned)
    row = batch.row(
        f"""UPDATE memory_entries SET content = ifnull(?, content), pinned = ifnull(?, pinned),
            updated_at = ? WHERE id = ? RETURNING {COLUMNS}""",
        (change.content, pinned, batch.now(), number),
    )
    updated = found(number, row)
    if change.content is not None:
        MEMORY_INDEX.remove(batch.connection, number)
        MEMORY_INDEX.add(batch.connection, number, change.content)
    return updated


def delete(batch: Batch, number: int) -> None:
    """Delete an entry and its index entry; raises MemoryNotFoundError."""
    if batch.change("DELETE FROM memory_entries WHERE id = ?", (number,)) == 0:
        found(number, None)
    MEMORY_INDEX.remove(batch.connection, number)


def scopes_text(scopes: tuple[str, ...]) -> str:
    """Return the scopes, each once, as the one value that ``json_each`` reads."""
    return _ENCODER.encode(tuple(dict.fromkeys(scopes))).decode()


def size(connection: apsw.Connection, scope: str) -> int:
    """Count the code points of a scope; SQLite counts no further than a NUL."""
    is_plain = "instr(CAST(content AS BLOB), x'00') = 0"
    where = "FROM memory_entries WHERE scope = ? AND"
    counted = f"SELECT ifnull(sum(length(content)), 0) {where} {is_plain}"
    rest = connection.execute(f"SELECT content {where} NOT {is_plain}", (scope,))
    plain: int = first_value(connection, counted, (scope,))
    return plain + sum(len(content) for (content,) in rest)


def recent(
    readers: Readers, scopes: tuple[str, ...], after: MemoryCursor | None, cancel: Cancel
) -> Iterator[Placed[MemoryEntry]]:
    """Yield the entries of some scopes: pinned first, then most recently updated first.

    An entry that changes after the first response is left out (contract rule 2).
    """
    if len(scopes) > limits.MANY_SCOPES:
        scopes = _known(readers, scopes, cancel)
    yield from _listed(readers, _IN_SCOPES, scopes_text(scopes), after, cancel)


def _known(readers: Readers, scopes: tuple[str, ...], cancel: Cancel) -> tuple[str, ...]:
    """Leave out scopes without entries, which every batch would look up again."""
    sql = """SELECT value FROM json_each(?)
        WHERE EXISTS (SELECT 1 FROM memory_entries WHERE scope = value)"""
    with readers.reading(cancel) as connection:
        return tuple(scope for (scope,) in connection.execute(sql, (scopes_text(scopes),)))


def of_scope(
    readers: Readers, scope: str, after: MemoryCursor | None, cancel: Cancel
) -> Iterator[Placed[MemoryEntry]]:
    """Yield the entries of one scope in the order of ``recent``."""
    yield from _listed(readers, "scope = ?", scope, after, cancel)


def _listed(
    readers: Readers, condition: str, value: str, after: MemoryCursor | None, cancel: Cancel
) -> Iterator[Placed[MemoryEntry]]:
    is_last = False
    while not is_last:
        bindings: Row = (value,)
        place = "TRUE"
        if after is not None:
            place = f"{UNCHANGED} AND (pinned, updated_at, id) < (?, ?, ?)"
            bindings += (after.moment, int(after.pinned), after.updated_at, after.id)
        sql = f"""SELECT {COLUMNS}, (SELECT last FROM store_clock) FROM memory_entries
            WHERE {condition} AND {place}
            ORDER BY pinned DESC, updated_at DESC, id DESC LIMIT ?"""
        with readers.reading(cancel) as connection:
            rows, is_last = read_batch(connection, sql, bindings, _row_size)
        for *row, latest in rows:
            item = entry(tuple(row))
            moment = latest if after is None else after.moment
            after = MemoryCursor(moment, item.pinned, item.updated_at, item.id)
            yield Placed(item, after)


def _row_size(row: Row) -> int:
    return len(row[1]) + len(row[2])
