"""Moves the write-ahead log into the database before it grows without bound.

Readers only ever hold short transactions (contract rule 3), so waiting for them
briefly is enough to let the log start over (users §3.22).
"""

from __future__ import annotations

import apsw

from flue_grpc import limits


class Checkpoints:
    """Decides when the writing connection checkpoints; used by its thread alone."""

    def __init__(self, connection: apsw.Connection) -> None:
        """Watch the log of ``connection``; its automatic checkpoints end with that.

        They would make a caller wait, and hide a sync that failed.
        """
        self._connection = connection
        self._pages = 0
        self._next = limits.CHECKPOINT_PAGES
        self._next_restart = limits.CHECKPOINT_FORCE_PAGES
        connection.set_wal_hook(self._grown)

    @property
    def is_due_when_idle(self) -> bool:
        """Whether anything was committed since the last complete checkpoint."""
        return self._pages > 0

    def run_if_large(self) -> None:
        """Checkpoint if the log has grown; raises apsw.Error when the system fails.

        Held up by a reader it does what it can and tries again later.
        """
        if self._pages >= self._next_restart:
            self._restart()
        elif self._pages >= self._next:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)

    def run_when_idle(self) -> None:
        """Checkpoint whatever was committed; else as ``run_if_large``."""
        if self._pages >= self._next_restart:
            self._restart()
        elif self._pages:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _restart(self) -> None:
        self._connection.set_busy_timeout(limits.CHECKPOINT_WAIT_MS)
        try:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_RESTART)
        except apsw.BusyError:
            self._next_restart = self._pages + limits.CHECKPOINT_FORCE_PAGES
        finally:
            self._connection.set_busy_timeout(limits.BUSY_TIMEOUT_MS)

    def _checkpoint(self, mode: int) -> None:
        pages, copied = self._connection.wal_checkpoint(mode=mode)
        if copied >= pages:
            self._pages, self._next = 0, limits.CHECKPOINT_PAGES
            self._next_restart = limits.CHECKPOINT_FORCE_PAGES
        else:
            self._next = max(pages, self._pages) + limits.CHECKPOINT_PAGES

    def _grown(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK
