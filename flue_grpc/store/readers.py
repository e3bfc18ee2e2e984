"""Reading connections, each used by one thread at a time (behaviour A1).

A thread has its own connection while it reads one bounded batch and gives it
back after it: 256 followers at rest hold none.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import apsw

from flue_grpc import limits
from flue_grpc.cancel import NEVER, Cancel
from flue_grpc.errors import DrainingError
from flue_grpc.store.sqlite_errors import translate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flue_grpc.store.health import Health


class Readers:
    """Lends reading connections to threads; safe from any thread."""

    def __init__(self, connect: Callable[[], apsw.Connection], health: Health) -> None:
        """Open none yet; ``connect`` makes one."""
        self._connect = connect
        self._health = health
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(limits.READERS_MAX)
        self._idle: list[apsw.Connection] = []
        self._busy: set[apsw.Connection] = set()
        self._is_closed = False

    @contextmanager
    def reading(self, cancel: Cancel = NEVER) -> Iterator[apsw.Connection]:
        """Lend a connection for one bounded read; SQL in it stops when ``cancel`` says so.

        Raises CancelledError or DeadlineError then, and errors of the database
        as errors of the product.
        """
        cancel.check()
        while not self._slots.acquire(timeout=limits.READERS_WAIT_SECONDS):
            cancel.check()
        try:
            connection = self._take()
            try:
                connection.set_progress_handler(
                    # An interruption before a statement begins would be forgotten by SQLite.
                    lambda: self._is_closed or cancel.is_cancelled(),
                    limits.SQL_PROGRESS_STEPS,
                )
                yield connection
            finally:
                self._give_back(connection)
        except apsw.InterruptError as error:
            cancel.check()
            raise DrainingError("the Store is closed") from error
        except apsw.Error as error:
            translated = translate(error)
            self._health.failed(translated)
            if translated is error:
                raise
            raise translated from error
        finally:
            self._slots.release()

    def close(self) -> None:
        """Stop what still reads and close every connection."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
            for connection in self._busy:
                connection.interrupt()
        for connection in idle:
            connection.close()

    def _take(self) -> apsw.Connection:
        with self._lock:
            if self._is_closed:
                raise DrainingError("the Store is closed")
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._connect()
        with self._lock:
            self._busy.add(connection)
        return connection

    def _give_back(self, connection: apsw.Connection) -> None:
        connection.set_progress_handler(None)
        # A statement that an exception left open would hold its transaction for ever.
        is_at_rest = connection.txn_state("main") == apsw.SQLITE_TXN_NONE
        with self._lock:
            self._busy.discard(connection)
            has_room = not self._is_closed and len(self._idle) < limits.READERS_IDLE_MAX
            is_kept = is_at_rest and has_room
            if is_kept:
                self._idle.append(connection)
        if not is_kept:
            connection.close()
