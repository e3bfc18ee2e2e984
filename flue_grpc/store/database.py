"""One open database: its lock, its writer, its readers and its health."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from flue_grpc.errors import StoreReadOnlyError
from flue_grpc.store import files, opening
from flue_grpc.store.changes import Changes
from flue_grpc.store.clock import Clock, Now, steady_time, system_time
from flue_grpc.store.connections import open_reader
from flue_grpc.store.health import Health
from flue_grpc.store.readers import Readers
from flue_grpc.store.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import apsw

    from flue_grpc.private_files import OwnerLock
    from flue_grpc.store.values import StoreSettings


class Database:
    """Opened by its owner, closed in the order that leaves one complete file."""

    def __init__(
        self, lock: OwnerLock, writer: Writer, readers: Readers, health: Health, changes: Changes
    ) -> None:
        """Made by ``open``."""
        self.writer = writer
        self.readers = readers
        self.health = health
        self.changes = changes
        self._lock = lock

    @classmethod
    def open(
        cls,
        path: Path,
        settings: StoreSettings,
        now: Now = system_time,
        steady: Now = steady_time,
    ) -> Self:
        """Open the database at ``path``, creating, adopting or migrating it.

        Raises UnusableDatabaseError for a file that is not to be opened, with
        nothing created beside it; AlreadyRunningError; ConfigError.
        """
        real = files.real_path(path)
        opening.inspect(real, settings)
        lock = files.claim(real)
        try:
            opened = opening.open_owned(real, settings, now)
            clock = Clock.load(opened.connection, now, steady)
            return cls._assemble(real, settings, lock, opened, clock)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def _assemble(
        cls,
        path: Path,
        settings: StoreSettings,
        lock: OwnerLock,
        opened: opening.Opened,
        clock: Clock,
    ) -> Self:
        health = Health("read_only" if opened.is_read_only else "serving")
        changes = Changes()
        writer = Writer(opened.connection, clock, changes, health)
        readers = Readers(lambda: open_reader(path, settings), health)
        return cls(lock, writer, readers, health, changes)

    def close(self) -> None:
        """Finish the writes that wait, stop the reads, close; calling it again does nothing."""
        self.readers.close()
        self.writer.close()
        self._lock.release()


@contextmanager
def owned(path: Path, settings: StoreSettings) -> Iterator[apsw.Connection]:
    """Be the owner of the database for a command, and give its writing connection.

    Raises as ``Database.open``; StoreReadOnlyError when it cannot be written.
    """
    real = files.real_path(path)
    opening.inspect(real, settings)
    with files.claim(real):
        opened = opening.open_owned(real, settings, system_time)
        try:
            if opened.is_read_only:
                raise StoreReadOnlyError("the database cannot be written")
            yield opened.connection
        finally:
            opened.connection.close()
