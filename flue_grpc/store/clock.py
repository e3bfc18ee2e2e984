"""Time that never goes back (behaviour A1)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from flue_grpc import limits
from flue_grpc.store.connections import first_value
from flue_grpc.store.values import MAX_TIME

if TYPE_CHECKING:
    import apsw


_AHEAD: Final = limits.CLOCK_AHEAD_HOURS * 3600 * 1_000_000
# Goes on while the machine sleeps, where the system has such a clock.
_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

Now = Callable[[], int]


def system_time() -> int:
    """Return microseconds since 1970 by the system's clock."""
    return time.time_ns() // 1000


def steady_time() -> int:
    """Return microseconds since some moment, by a clock that nobody sets."""
    return time.clock_gettime_ns(_STEADY) // 1000


def horizon(now: int) -> int:
    """Return the latest time from elsewhere that may move the Store's clock.

    One absurd time would stop it for good else: it never goes back.
    """
    return now + _AHEAD


class Clock:
    """Gives each write a time after every time written before, in microseconds.

    The database keeps the last one, so this holds across restarts with a clock
    that was set back. Used by the thread that writes, and by no other.
    """

    def __init__(
        self, last: int, now: Now = system_time, age: int = 0, steady: Now = steady_time
    ) -> None:
        """Go on after ``last``, the latest time in the database, and from ``age``."""
        self._last = last
        self._saved = last
        self._now = now
        self._age = age - steady()
        self._steady = steady

    @classmethod
    def load(
        cls, connection: apsw.Connection, now: Now = system_time, steady: Now = steady_time
    ) -> Clock:
        """Go on after the latest time and the youngest request id that the database tells.

        A clock that had come to the end of time starts over.
        """
        last = first_value(connection, "SELECT last FROM store_clock")
        age = first_value(connection, "SELECT max(created_at) FROM requests")
        return cls(last if last < MAX_TIME else 0, now, now() if age is None else age, steady)

    def tick(self) -> int:
        """Return max(now, last + 1 µs)."""
        self._last = min(max(self._now(), self._last + 1), MAX_TIME)
        return self._last

    def age(self) -> int:
        """Return a time that passes while the Store is open, however the system's clock is set."""
        return self._age + self._steady()

    def horizon(self) -> int:
        """Return the latest time from elsewhere that may move this clock."""
        return horizon(self._now())

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
