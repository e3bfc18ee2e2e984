"""SQLite connections with every setting explicit (behaviour A1, practice §1.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import apsw

from flue_grpc import limits

if TYPE_CHECKING:
    from pathlib import Path

    from flue_grpc.store.values import StoreSettings

Row = tuple[Any, ...]

_DURABILITY: Final = {"full": "FULL", "normal": "NORMAL"}


def open_writer(path: Path, settings: StoreSettings) -> apsw.Connection:
    """Open an existing database for reading and writing; SQLite decides if it can write."""
    connection = _open(path, apsw.SQLITE_OPEN_READWRITE, settings)
    connection.execute(f"PRAGMA synchronous = {_DURABILITY[settings.durability]}")
    connection.execute(f"PRAGMA journal_size_limit = {limits.JOURNAL_BYTES}")
    return connection


def open_reader(path: Path, settings: StoreSettings) -> apsw.Connection:
    """Open an existing database for reading only."""
    return _open(path, apsw.SQLITE_OPEN_READONLY, settings)


def open_beside(path: Path, settings: StoreSettings) -> apsw.Connection:
    """Open an existing database for a command that reads it, beside its owner or alone.

    Alone it tidies up behind itself, which a reader cannot.
    """
    connection = _open(path, apsw.SQLITE_OPEN_READWRITE, settings)
    connection.execute("PRAGMA query_only = TRUE")
    return connection


def open_kept(path: Path, settings: StoreSettings) -> apsw.Connection:
    """Open a database whose file and log are to stay as they are, beside its owner or alone."""
    connection = open_beside(path, settings)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    return connection


def open_untouched(path: Path, settings: StoreSettings) -> apsw.Connection:
    """Open a database that nobody has open, for a look: not even a log is made beside it."""
    name = f"file:{quote(str(path))}?immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return apsw.Connection(name, flags=flags, vfs=settings.vfs)


def _open(path: Path, access: int, settings: StoreSettings) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=access, vfs=settings.vfs)
    connection.set_busy_timeout(limits.BUSY_TIMEOUT_MS)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1)
    return connection


def first_row(connection: apsw.Connection, sql: str, bindings: Row = ()) -> Row | None:
    """Return the first row and end the statement; None when there is none."""
    cursor = connection.execute(sql, bindings)
    row = cursor.fetchone()
    cursor.close(force=True)
    return row


def first_value(connection: apsw.Connection, sql: str, bindings: Row = ()) -> Any:  # noqa: ANN401  (as SQLite has it)
    """Return the first column of the first row, of a statement that always has one."""
    row = first_row(connection, sql, bindings)
    if row is None:
        raise LookupError(sql)
    return row[0]
