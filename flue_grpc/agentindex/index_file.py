"""The index file: one SQLite database per home, a cache that is never fatal (behaviour B4).

Missing, damaged, or of another format, it is made anew and renamed into place. One
process at a time writes it, and readers take what is committed.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import tempfile
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from shutil import rmtree
from threading import Lock
from typing import TYPE_CHECKING, Final

import apsw
import msgspec

from flue_grpc.errors import ConfigError
from flue_grpc.limits import BUSY_TIMEOUT_MS, JOURNAL_BYTES, READERS_IDLE_MAX
from flue_grpc.private_files import (
    DIRECTORY_MODE,
    OwnerLock,
    create_private_file,
    make_private_directory,
    tighten,
)
from flue_grpc.transactions import transaction

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = logging.getLogger(__name__)

# Raise the number when a parser or a table changes: the transcripts are read again.
_FORMAT: Final = f"2 {sys.byteorder}"
_SCHEMA: Final = """
create table format(value text not null);
create table transcripts(
  tid integer primary key autoincrement,
  changed integer not null,
  path blob not null unique,
  place blob not null,
  record blob not null
);
create table states(tid integer primary key, changed integer not null, state blob not null);
create table usage(id integer primary key, data blob not null);
create table checkpoints(
  tid integer not null, offset integer not null, model text not null,
  primary key (tid, offset)
) without rowid;
create table ledger_blocks(
  tid integer not null, first integer not null, entries blob not null,
  primary key (tid, first)
) without rowid;
create table ledger(
  tid integer not null, key integer not null,
  input integer not null, output integer not null,
  cache_read integer not null, cache_write integer not null,
  primary key (tid, key)
) without rowid;
"""


class SchemaPart(msgspec.Struct, frozen=True):
    """Tables that another module keeps in the file; ``format`` changes with them."""

    format: str
    sql: str


class IndexFile:
    """An index file that this process owns, and its connections."""

    def __init__(self, path: Path, parts: tuple[SchemaPart, ...], lock: OwnerLock | None) -> None:
        """Use ``open_index_file``; without ``lock`` the file is a temporary one."""
        self.path = path
        self._parts = parts
        self._lock = lock
        self._idle: list[apsw.Connection] = []
        self._idle_lock = Lock()
        # Held while the file and its log are opened, which must not be of two files.
        self._opening = Lock()
        self._generation = 0
        self.ensure()
        self._inode = self.path.stat().st_ino

    def ensure(self) -> None:
        """Make the file anew unless it is there and sound; raise OSError when it cannot be."""
        try:
            if self._is_current():
                return
            _log.info("the transcript index is of another format and is made anew")
        except (apsw.Error, OSError) as error:
            if not isinstance(error, FileNotFoundError):
                _log.warning("the transcript index is unusable and is made anew: %s", error)
        self.rebuild()

    def rebuild(self) -> None:
        """Put a fresh, empty file in the place of whatever is there. Raises OSError."""
        make_private_directory(self.path.parent)
        fresh = self.path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        os.close(create_private_file(fresh))
        try:
            _fill(fresh, _SCHEMA + "".join(part.sql for part in self._parts), self._format())
        except apsw.Error as error:
            raise OSError(f"cannot write {fresh}: {error}") from error
        with self._opening:
            # A log left behind would be replayed into the new file.
            for suffix in ("-wal", "-shm"):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            fresh.replace(self.path)
            self._inode = self.path.stat().st_ino
        # Not before: one that was opened meanwhile sees the old file.
        self._drop_idle()

    @property
    def is_in_place(self) -> bool:
        """Whether the file is still the one that was opened, with something in it.

        Who deletes, replaces or empties it leaves connections that see the old one.
        """
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return status.st_ino == self._inode and status.st_size > 0

    @contextmanager
    def reader(self) -> Iterator[apsw.Connection]:
        """Lend a read-only connection; end each statement before giving it back."""
        with self._idle_lock:
            generation = self._generation
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            with self._opening:
                connection = _connect(self.path, apsw.SQLITE_OPEN_READONLY)
        try:
            yield connection
        except BaseException:
            connection.close(force=True)
            raise
        with self._idle_lock:
            if len(self._idle) < READERS_IDLE_MAX and generation == self._generation:
                self._idle.append(connection)
                return
        connection.close()

    def writer(self) -> apsw.Connection:
        """Open a connection that may write; the caller closes it. Raises apsw.Error."""
        with self._opening:
            return connect_writer(self.path)

    def close(self) -> None:
        """Close idle readers and give the file up; a temporary one is removed."""
        self._drop_idle()
        if self._lock is not None:
            self._lock.release()
        else:
            rmtree(self.path.parent, ignore_errors=True)

    def _drop_idle(self) -> None:
        with self._idle_lock:
            idle, self._idle = self._idle, []
            # Those lent at the moment are closed when they come back.
            self._generation += 1
        for connection in idle:
            connection.close(force=True)

    def _format(self) -> str:
        return " ".join([_FORMAT, *(part.format for part in self._parts)])

    def _is_current(self) -> bool:
        if not stat.S_ISREG(self.path.lstat().st_mode):
            return False
        for suffix in ("", "-wal", "-shm"):
            tighten(Path(f"{self.path}{suffix}"))
        connection = _connect(self.path, apsw.SQLITE_OPEN_READWRITE)
        try:
            found = connection.execute("select value from format").get
            return bool(found == self._format())
        finally:
            connection.close()


def open_index_file(directory: Path, home: str, parts: tuple[SchemaPart, ...]) -> IndexFile:
    """Open the index of ``home`` in ``directory``, made 0700 whatever it was.

    Where the directory cannot be used, a temporary file serves until the end of the
    process. Raises AlreadyRunningError when another process has the index.
    """
    path = index_path(directory, home)
    lock = None
    try:
        _make_own_directory(directory)
        lock = OwnerLock(lock_path(path))
        return IndexFile(path, parts, lock)
    except (OSError, ConfigError) as error:
        if lock is not None:
            lock.release()
        _log.warning("the transcript index cannot be kept in %s: %s", directory, error)
    return IndexFile(Path(tempfile.mkdtemp(prefix="flue-index-")) / path.name, parts, None)


def index_path(directory: Path, home: str) -> Path:
    """Name the index file of ``home``, by a hash of its real path."""
    name = blake2b(os.fsencode(os.path.realpath(home)), digest_size=12).hexdigest()
    return directory / f"{name}.db"


def lock_path(path: Path) -> Path:
    """Name the lock of whoever owns the index file ``path``."""
    return path.with_suffix(".lock")


def connect_writer(path: Path) -> apsw.Connection:
    """Open an existing index file for writing. Raises apsw.Error."""
    connection = _connect(path, apsw.SQLITE_OPEN_READWRITE)
    # A power cut may lose the last transactions of a cache, never its soundness.
    connection.execute("pragma synchronous = normal")
    connection.execute(f"pragma journal_size_limit = {JOURNAL_BYTES}")
    return connection


def _make_own_directory(directory: Path) -> None:
    with suppress(FileNotFoundError):
        status = directory.stat()
        if stat.S_IMODE(status.st_mode) != DIRECTORY_MODE and status.st_uid == os.geteuid():
            directory.chmod(DIRECTORY_MODE)
    make_private_directory(directory)


def _connect(path: Path, flags: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=flags)
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        # Opens the log as well.
        connection.execute("pragma schema_version").fetchall()
    except BaseException:
        connection.close(force=True)
        raise
    return connection


def _fill(path: Path, schema: str, index_format: str) -> None:
    connection = _connect(path, apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.execute("pragma journal_mode = wal")
        # An empty file that a power cut spoils is made anew at the next start.
        connection.execute("pragma synchronous = off")
        with transaction(connection):
            connection.execute(schema)
            connection.execute("insert into format values(?)", (index_format,))
    finally:
        connection.close()
