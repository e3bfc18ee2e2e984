"""One open database: its lock, its writer, its readers and its health."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from flue_grpc.store import files, opening
from flue_grpc.store.changes import Changes
from flue_grpc.store.clock import Clock, Now, system_time
from flue_grpc.store.health import Health
from flue_grpc.store.readers import Readers
from flue_grpc.store.writer import Writer

if TYPE_CHECKING:
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
    def open(cls, path: Path, settings: StoreSettings, now: Now = system_time) -> Self:
        """Open the database at ``path``, creating, adopting or migrating it.

        Raises UnusableDatabaseError for a file that is not to be opened, with
        nothing created beside it; AlreadyRunningError; ConfigError.
        """
        opening.inspect(path, settings)
        lock = files.claim(path)
        try:
            opened = opening.open_owned(path, settings, now)
            return cls._assemble(path, settings, lock, opened, now)
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
        now: Now,
    ) -> Self:
        health = Health("read_only" if opened.is_read_only else "serving")
        changes = Changes()
        clock = Clock.load(opened.connection, now)
        writer = Writer(opened.connection, clock, changes, health)
        return cls(lock, writer, Readers(path, settings, health), health, changes)

    def close(self) -> None:
        """Finish the writes that wait, stop the reads, close; calling it again does nothing."""
        self.readers.close()
        self.writer.close()
        self._lock.release()


def connection_of(path: Path, settings: StoreSettings) -> apsw.Connection:
    """Open the database of a lock's holder for a command; raises as ``Database.open``."""
    return opening.open_owned(path, settings, system_time).connection
