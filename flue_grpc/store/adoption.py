"""Takes over a database that the Go original wrote (behaviour A1).

One-way, in one transaction, with a copy kept beside it. Seconds become
microseconds, every searchable message becomes searchable, and messages whose
session is missing get one, so that nothing is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from flue_grpc import limits
from flue_grpc.store import files, migrations
from flue_grpc.store.clock import horizon
from flue_grpc.store.connections import first_value
from flue_grpc.store.copying import copy_database
from flue_grpc.store.images import decode_images
from flue_grpc.store.text_index import MEMORY_INDEX, MESSAGE_INDEX
from flue_grpc.store.values import MAX_TIME, MIN_TIME
from flue_grpc.text.clean import cut_bytes
from flue_grpc.transactions import transaction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import apsw

    from flue_grpc.store.values import StoreSettings

COPY_SUFFIX: Final = ".before-flue-grpc"
_ID_MAX: Final = 2**62  # SQLite gives none after 2^63 - 1
_TABLES: Final = ("sessions", "messages", "memory_entries")
_TEXTS: Final = ("role", "content", "provider", "tool_calls", "tool_call_id", "name", "images")


def keep_copy(path: Path, connection: apsw.Connection, settings: StoreSettings) -> Path:
    """Copy the untouched database beside itself, 0600, never over an earlier copy."""
    copy = files.free_name(files.with_suffix(path, COPY_SUFFIX))
    copy_database(connection, copy, settings)
    return copy


def adopt(connection: apsw.Connection, now: int) -> None:
    """Rewrite the three tables into the schema of today; ``now`` in microseconds."""
    connection.pragma("foreign_keys", value=False)
    connection.pragma("legacy_alter_table", value=True)
    try:
        with transaction(connection):
            _rewrite(connection, now)
    finally:
        connection.pragma("legacy_alter_table", value=False)
        connection.pragma("foreign_keys", value=True)


def _rewrite(connection: apsw.Connection, now: int) -> None:
    _drop_old_search(connection)
    sequences = dict(connection.execute("SELECT name, seq FROM sqlite_sequence"))
    for table in _TABLES:
        if migrations.columns(connection, table):
            connection.execute(f"ALTER TABLE {table} RENAME TO original_{table}")
    migrations.migrate(connection, 0, now)
    names = _SessionNames(connection)
    _copy_sessions(connection, names)
    _copy_messages(connection, names)
    _give_orphans_sessions(connection)
    _copy_memory(connection)
    for table in _TABLES:
        connection.execute(f"DROP TABLE IF EXISTS original_{table}")
    # Ids of rows that were deleted before must not be given again.
    for table in ("messages", "memory_entries"):
        connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        connection.execute(
            f"INSERT INTO sqlite_sequence SELECT ?, max(?, ifnull(max(id), 0)) FROM {table}",
            (table, _usable(sequences.get(table, 0))),
        )
    connection.execute("UPDATE store_clock SET last = ?", (_latest(connection, now),))


def _drop_old_search(connection: apsw.Connection) -> None:
    for name in _names(connection, "type = 'trigger'"):
        connection.execute(f"DROP TRIGGER {name}")
    for name in _names(connection, "sql LIKE 'CREATE VIRTUAL TABLE%USING fts5%'"):
        connection.execute(f"DROP TABLE {name}")


def _names(connection: apsw.Connection, condition: str) -> list[str]:
    rows = connection.execute(f"SELECT name FROM sqlite_schema WHERE {condition}")
    return ['"' + str(name).replace('"', '""') + '"' for (name,) in rows]


class _SessionNames:
    """Session ids as text; different bytes stay different ids."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._given: dict[bytes, str] = {}

    def of(self, raw: bytes | None) -> str:
        """Return the id's text, or one that is free where the bytes are no UTF-8."""
        raw = raw or b""
        text = _text(raw)
        if text.encode() == raw:
            return text
        if raw not in self._given:
            self._given[raw] = self._free(text)
        return self._given[raw]

    def _free(self, text: str) -> str:
        number, free = 1, text
        while free in self._given.values() or self._is_taken(free):
            number += 1
            free = f"{text}.{number}"
        return free

    def _is_taken(self, text: str) -> bool:
        found = first_value(
            self._connection,
            """SELECT EXISTS (SELECT 1 FROM original_sessions WHERE CAST(id AS BLOB) = ?1)
                OR EXISTS (SELECT 1 FROM original_messages WHERE CAST(session_id AS BLOB) = ?1)""",
            (text.encode(),),
        )
        return bool(found)


def _copy_sessions(connection: apsw.Connection, names: _SessionNames) -> None:
    rows = _rows(
        connection, "sessions", texts=("id", "title"), numbers=("created_at", "updated_at")
    )
    for row in rows:
        connection.execute(
            "INSERT OR IGNORE INTO sessions VALUES (?, ?, ?, ?)",
            (
                names.of(row["id"]),
                # Larger ones would keep every list from being received.
                cut_bytes(_text(row["title"]), limits.TITLE_BYTES),
                _time(row["created_at"]),
                _time(row["updated_at"]),
            ),
        )


def _copy_messages(connection: apsw.Connection, names: _SessionNames) -> None:
    rows = _rows(
        connection, "messages", texts=("session_id", *_TEXTS), numbers=("id", "created_at")
    )
    for row in rows:
        number = row["id"]
        texts = {name: _text(row[name]) for name in _TEXTS}
        connection.execute(
            f"""INSERT INTO messages (id, session_id, created_at, image_count, {", ".join(_TEXTS)})
                VALUES (?, ?, ?, ?, {", ".join("?" * len(_TEXTS))})""",
            (
                number,
                names.of(row["session_id"]),
                _time(row["created_at"]),
                len(decode_images(texts["images"])),
                *texts.values(),
            ),
        )
        if first_value(connection, "SELECT searchable FROM messages WHERE id = ?", (number,)):
            MESSAGE_INDEX.add(connection, number, texts["content"])


def _give_orphans_sessions(connection: apsw.Connection) -> None:
    connection.execute(
        """INSERT INTO sessions SELECT session_id, '', min(created_at), max(created_at)
            FROM messages WHERE session_id NOT IN (SELECT id FROM sessions)
            GROUP BY session_id"""
    )


def _copy_memory(connection: apsw.Connection) -> None:
    if not migrations.columns(connection, "original_memory_entries"):
        return
    rows = _rows(
        connection,
        "memory_entries",
        texts=("scope", "content"),
        numbers=("id", "pinned", "created_at", "updated_at"),
    )
    for row in rows:
        content = _text(row["content"])
        connection.execute(
            """INSERT INTO memory_entries (id, scope, pinned, created_at, updated_at, content)
                VALUES (?, ?, ?, ?, ?, ?)""",
            (
                row["id"],
                _text(row["scope"]),
                int(row["pinned"] != 0),
                _time(row["created_at"]),
                _time(row["updated_at"]),
                content,
            ),
        )
        MEMORY_INDEX.add(connection, row["id"], content)


def _rows(
    connection: apsw.Connection, table: str, texts: tuple[str, ...], numbers: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of an original table; columns that it lacks are empty or 0.

    Ids that are not to be used are all given anew, from 1 and in the same order.
    """
    known = migrations.columns(connection, f"original_{table}")
    values = [
        # Go strings may hold bytes that are no UTF-8, which only a BLOB brings here.
        *(f"CAST({name} AS BLOB)" if name in known else "x''" for name in texts),
        *(f"CAST({name} AS INTEGER)" if name in known else "0" for name in numbers),
    ]
    is_renumbered = "id" in numbers and not _has_usable_ids(connection, table)
    rows = connection.execute(f"SELECT {', '.join(values)} FROM original_{table} ORDER BY rowid")
    for number, row in enumerate(rows, 1):
        named = dict(zip(texts + numbers, row, strict=True))
        yield {**named, "id": number} if is_renumbered else named


def _has_usable_ids(connection: apsw.Connection, table: str) -> bool:
    """Whether lists, which begin after 0, show every row, and there are ids left for new ones."""
    if "id" not in migrations.columns(connection, f"original_{table}"):
        return False
    found = first_value(
        connection,
        f"SELECT count(*) FROM original_{table} WHERE CAST(id AS INTEGER) NOT BETWEEN 1 AND ?",
        (_ID_MAX,),
    )
    return bool(found == 0)


def _usable(sequence: int) -> int:
    return sequence if sequence <= _ID_MAX else 0


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", "replace")


def _time(seconds: int | None) -> int:
    return min(max((seconds or 0) * 1_000_000, MIN_TIME), MAX_TIME)


def _latest(connection: apsw.Connection, now: int) -> int:
    """Return the latest time that is not far ahead of now, so that later writes come after it."""
    latest: int = first_value(
        connection,
        """SELECT ifnull(max(moment), 0) FROM (
            SELECT created_at AS moment FROM messages
            UNION ALL SELECT created_at FROM sessions UNION ALL SELECT updated_at FROM sessions
            UNION ALL SELECT created_at FROM memory_entries
            UNION ALL SELECT updated_at FROM memory_entries)
            WHERE moment <= ?""",
        (horizon(now),),
    )
    return latest
