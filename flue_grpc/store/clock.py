"""Time that never goes back (behaviour A1)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from flue_grpc.store.connections import first_value
from flue_grpc.store.values import MAX_TIME

if TYPE_CHECKING:
    import apsw


def system_time() -> int:
    """Return microseconds since 1970 by the system's clock."""
    return time.time_ns() // 1000


Now = Callable[[], int]


class Clock:
    """Gives each write a time after every time written before, in microseconds.

    The database keeps the last one, so this holds across restarts with a clock
    that was set back. Used by the thread that writes, and by no other.
    """

    def __init__(self, last: int, now: Now = system_time) -> None:
        """Go on after ``last``, the latest time in the database."""
        self._last = last
        self._saved = last
        self._now = now

    @classmethod
    def load(cls, connection: apsw.Connection, now: Now = system_time) -> Clock:
        """Go on after the latest time that the database tells."""
        return cls(first_value(connection, "SELECT last FROM store_clock"), now)

    def tick(self) -> int:
        """Return max(now, last + 1 µs)."""
        self._last = min(max(self._now(), self._last + 1), MAX_TIME)
        return self._last

    def peek(self) -> int:
        """Return max(now, last)."""
        return max(self._now(), self._last)

    def advance(self, moment: int) -> None:
        """Let all later times come after ``moment``, which came from elsewhere."""
        self._last = max(self._last, moment)

    def save(self, connection: apsw.Connection) -> None:
        """Write the latest time in the current transaction, if there is a new one."""
        if self._last != self._saved:
            connection.execute("UPDATE store_clock SET last = ?", (self._last,))

    def saved(self) -> None:
        """Learn that the transaction was committed."""
        self._saved = self._last
