"""The schema as numbered migrations, recorded in the database (behaviour A1).

Only what SQLite itself has is used, so that any SQLite tool can open the file;
searching the two indexes needs SQLite 3.43.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from flue_grpc.store.connections import first_value
from flue_grpc.store.text_index import MEMORY_INDEX, MESSAGE_INDEX
from flue_grpc.store.values import COMPACTION_MARKER

if TYPE_CHECKING:
    import apsw

_ORIGINAL_COLUMNS: Final = {
    "sessions": {"id", "title", "created_at", "updated_at"},
    "messages": {"id", "session_id", "role", "content", "created_at"},
}


class Migration(msgspec.Struct, frozen=True):
    """One step of the schema; ``version`` counts from 1 without gaps."""

    version: int
    name: str
    statements: tuple[str, ...]


MIGRATIONS: Final = (
    Migration(
        1,
        "sessions, messages, memory and their search indexes",
        (
            """CREATE TABLE sessions (
                id TEXT NOT NULL PRIMARY KEY,
                title TEXT NOT NULL,
                created_at INTEGER NOT NULL,
                updated_at INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID""",
            """CREATE INDEX sessions_by_update
                ON sessions (updated_at DESC, created_at DESC, id)""",
            # The large columns stand last: SQLite then reads the others without them.
            f"""CREATE TABLE messages (
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                session_id TEXT NOT NULL REFERENCES sessions (id),
                created_at INTEGER NOT NULL,
                searchable INTEGER NOT NULL AS (
                    role IN ('user', 'assistant') AND content <> ''
                    AND name <> '{COMPACTION_MARKER}'
                ) STORED,
                role TEXT NOT NULL,
                provider TEXT NOT NULL DEFAULT '',
                tool_call_id TEXT NOT NULL DEFAULT '',
                name TEXT NOT NULL DEFAULT '',
                image_count INTEGER NOT NULL DEFAULT 0,
                content TEXT NOT NULL,
                tool_calls TEXT NOT NULL DEFAULT '',
                images TEXT NOT NULL DEFAULT ''
            ) STRICT""",
            # With ``searchable`` in it the index alone tells what has to be searchable.
            "CREATE INDEX messages_by_session ON messages (session_id, id, searchable)",
            """CREATE TABLE memory_entries (
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                scope TEXT NOT NULL,
                pinned INTEGER NOT NULL DEFAULT 0,
                created_at INTEGER NOT NULL,
                updated_at INTEGER NOT NULL,
                content TEXT NOT NULL
            ) STRICT""",
            """CREATE INDEX memory_entries_by_scope
                ON memory_entries (scope, pinned DESC, updated_at DESC, id DESC)""",
            """CREATE TABLE requests (
                rpc TEXT NOT NULL,
                request_id TEXT NOT NULL,
                body BLOB NOT NULL,
                made TEXT NOT NULL,
                created_at INTEGER NOT NULL,
                PRIMARY KEY (rpc, request_id)
            ) STRICT, WITHOUT ROWID""",
            "CREATE INDEX requests_by_age ON requests (created_at)",
            """CREATE TABLE store_clock (
                id INTEGER PRIMARY KEY CHECK (id = 1),
                last INTEGER NOT NULL
            ) STRICT""",
            "INSERT INTO store_clock VALUES (1, 0)",
            MESSAGE_INDEX.schema,
            MEMORY_INDEX.schema,
        ),
    ),
)
CURRENT_VERSION: Final = MIGRATIONS[-1].version


class Contents(msgspec.Struct, frozen=True):
    """What a database holds; ``version`` only for a "store".

    "original" is one that the Go original wrote, "foreign" belongs to something
    else.
    """

    kind: Literal["empty", "store", "original", "foreign"]
    version: int = 0


def look(connection: apsw.Connection) -> Contents:
    """Tell what the database holds, without changing it."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    if "flue_migrations" in names:
        version = first_value(connection, "SELECT max(version) FROM flue_migrations")
        return Contents("store", version) if version else Contents("foreign")
    if not names:
        return Contents("empty")
    if _ORIGINAL_COLUMNS.keys() <= names and all(
        required <= columns(connection, table) for table, required in _ORIGINAL_COLUMNS.items()
    ):
        return Contents("original")
    return Contents("foreign")


def columns(connection: apsw.Connection, table: str) -> set[str]:
    """Return the names of the columns of a table, none when it is missing."""
    rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return {name for (name,) in rows}


def migrate(connection: apsw.Connection, version: int, now: int) -> None:
    """Bring a database from ``version`` (0: an empty one) to the current one.

    Runs within the caller's transaction; ``now`` in microseconds is recorded.
    """
    if version == 0:
        connection.execute(
            """CREATE TABLE flue_migrations (
                version INTEGER PRIMARY KEY,
                name TEXT NOT NULL,
                applied_at INTEGER NOT NULL
            ) STRICT"""
        )
    for migration in MIGRATIONS[version:]:
        for statement in migration.statements:
            connection.execute(statement)
        connection.execute(
            "INSERT INTO flue_migrations VALUES (?, ?, ?)",
            (migration.version, migration.name, now),
        )
