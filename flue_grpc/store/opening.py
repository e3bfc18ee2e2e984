"""Opens a database for its owner: creates, adopts or migrates it, or refuses (behaviour A1)."""

from __future__ import annotations

import logging
from contextlib import closing
from typing import TYPE_CHECKING, Final

import apsw
import msgspec

from flue_grpc.errors import UnusableDatabaseError
from flue_grpc.store import adoption, files, migrations
from flue_grpc.store.connections import (
    open_beside,
    open_reader,
    open_untouched,
    open_writer,
)
from flue_grpc.store.migrations import CURRENT_VERSION, Contents
from flue_grpc.store.sqlite_errors import in_words
from flue_grpc.store.text_index import INDEXES
from flue_grpc.transactions import transaction

if TYPE_CHECKING:
    from pathlib import Path

    from flue_grpc.store.clock import Now
    from flue_grpc.store.values import StoreSettings

_LOG: Final = logging.getLogger(__name__)


class Opened(msgspec.Struct, frozen=True):
    """The writing connection of a database that is ready for use."""

    connection: apsw.Connection
    is_read_only: bool


def inspect(path: Path, settings: StoreSettings) -> Contents:
    """Tell what the file at ``path`` holds, without changing it or creating anything.

    A transaction that a crash cut off is undone, as SQLite does at every opening.
    Raises UnusableDatabaseError for anything but a missing file, an empty one
    or a database that this version can use; a newer one is refused with both
    versions named.
    """
    files.refuse_wrong_kind(path)
    if not path.exists() or path.stat().st_size == 0:
        return Contents("empty")
    try:
        contents = _look(path, settings)
    except apsw.Error as error:
        raise unusable(path, error) from error
    refuse_unknown(path, contents)
    return contents


def _look(path: Path, settings: StoreSettings) -> Contents:
    if not files.companions(path.resolve()):
        try:
            with closing(open_untouched(path, settings)) as connection:
                return migrations.look(connection)
        except apsw.CorruptError:
            # Or a server was just starting on it: its locks tell.
            pass
    try:
        with closing(open_reader(path, settings)) as connection:
            return migrations.look(connection)
    except apsw.ReadOnlyError:
        # A journal of a transaction that a crash cut off: a reader cannot undo it.
        with closing(open_beside(path, settings)) as connection:
            return migrations.look(connection)


def refuse_unknown(path: Path, contents: Contents) -> None:
    """Raise UnusableDatabaseError for a database that is not ours or of a newer version."""
    if contents.kind == "foreign":
        raise UnusableDatabaseError(f"{path} is a database of another program")
    if contents.version > CURRENT_VERSION:
        raise UnusableDatabaseError(
            f"{path} has schema version {contents.version}, this program knows versions up to "
            f"{CURRENT_VERSION}; it was left as it is, use a newer flue-grpc"
        )


def open_owned(path: Path, settings: StoreSettings, now: Now) -> Opened:
    """Open the database, made ready for reading and writing; the caller holds its lock.

    Raises UnusableDatabaseError when that cannot be done; a file that was
    created for it is removed again.
    """
    created = files.create_missing(path)
    files.refuse_other_names(path)
    try:
        files.tighten(path)
        connection = open_writer(path, settings)
        try:
            return Opened(connection, _prepare(path, connection, settings, now))
        except BaseException:
            connection.close()
            raise
    except BaseException as error:
        if created:
            files.remove(path)
        if isinstance(error, apsw.Error):
            raise unusable(path, error) from error
        raise


def _prepare(path: Path, connection: apsw.Connection, settings: StoreSettings, now: Now) -> bool:
    """Make the database ready; say whether it can only be read."""
    contents = migrations.look(connection)
    refuse_unknown(path, contents)
    if connection.readonly("main"):
        if contents != Contents("store", CURRENT_VERSION):
            raise UnusableDatabaseError(f"{path} cannot be written, so it cannot be made ready")
        return True
    if contents.kind == "original":
        _adopt(path, connection, settings, now)
    else:
        _use_write_ahead_log(path, connection)
        if contents.version < CURRENT_VERSION:
            with transaction(connection):
                migrations.migrate(connection, contents.version, now())
    _complete_indexes(connection)
    return False


def _adopt(path: Path, connection: apsw.Connection, settings: StoreSettings, now: Now) -> None:
    """Take the database over; a copy of it is kept, unless it stays as it was."""
    copy = adoption.keep_copy(path, connection, settings)
    try:
        _use_write_ahead_log(path, connection)
        _LOG.info("adopting the database of the Go original")
        adoption.adopt(connection, now())
    except BaseException:
        # Each start that fails would leave one more copy of all there is.
        if migrations.look(connection).kind == "original":
            copy.unlink()
        raise


def _use_write_ahead_log(path: Path, connection: apsw.Connection) -> None:
    mode = connection.pragma("journal_mode", "wal")
    if mode != "wal":
        raise UnusableDatabaseError(
            f"{path} is on {files.filesystem(path)}, which has no shared memory for SQLite's "
            "write-ahead log, as network file systems have not; choose a local --data-dir"
        )


def _complete_indexes(connection: apsw.Connection) -> None:
    for index in INDEXES:
        if not index.is_complete(connection):
            _LOG.warning("filling the search index %s anew", index.name)
            with transaction(connection):
                index.refill(connection)


def unusable(path: Path, error: apsw.Error) -> UnusableDatabaseError:
    """Say in words why SQLite cannot use the database."""
    if isinstance(error, apsw.NotADBError):
        reason = "is not a SQLite database"
    elif isinstance(error, apsw.CorruptError):
        reason = "is damaged; run `flue-grpc check`, or restore a backup"
    elif isinstance(error, (apsw.BusyError, apsw.LockedError)):
        reason = "is locked by another program"
    else:
        reason = f"cannot be opened: {in_words(error, path.parent)}"
    return UnusableDatabaseError(f"{path} {reason}")
