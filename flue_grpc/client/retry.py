"""When a call is made again, and how long that waits."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from flue_grpc.client.failures import CallError

# Called with why a stream broke, and with None when it goes on.
OnBreak = Callable[["CallError | None"], None]

_DOUBLINGS: Final = 30  # more would pass what a float holds
_ENDLESS_SECONDS: Final = 1e8  # gRPC's header has eight digits, and takes more for no time


def in_silence(error: CallError | None) -> None:
    """Tell nobody of a break."""
    del error


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """``attempts`` calls in a row without progress, waiting longer before each.

    ``first_wait`` and ``longest_wait`` are seconds; each wait doubles. A time that
    the server names in RetryInfo is never undercut. A live stream (``follow``, Watch)
    that has brought something goes by time instead: it is tried again for ``patience``
    seconds without progress, ``math.inf`` for ever.
    """

    attempts: int = 8
    first_wait: float = 0.1
    longest_wait: float = 2.0
    patience: float = 600.0


class Deadline:
    """The time that a whole call may take, repeats and resumes included."""

    def __init__(self, seconds: float | None) -> None:
        """Start the clock; None never ends, nor does what is longer than gRPC can say."""
        self._end = None
        if seconds is not None and seconds < _ENDLESS_SECONDS:
            self._end = time.monotonic() + seconds

    def remaining(self) -> float | None:
        """Seconds that are left, at least 0; None when there is no end."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())


class Backoff:
    """The repeats of one call: how long to wait for each, or that there is no use."""

    def __init__(
        self,
        policy: RetryPolicy,
        deadline: Deadline,
        *,
        is_live: bool = False,
        on_break: OnBreak = in_silence,
    ) -> None:
        """Begin with no failure seen; ``on_break`` hears of the first one and of its end."""
        self._policy = policy
        self._deadline = deadline
        self._is_live = is_live
        self._on_break = on_break
        self._failures = 0
        self._failing_since = 0.0
        self.has_begun = False

    def progressed(self) -> None:
        """Something arrived: earlier failures no longer count."""
        self.has_begun = True
        if self._failures:
            self._failures = 0
            self._on_break(None)

    def pause_after(self, error: CallError) -> float:
        """Say how many seconds to wait; raises ``error`` when it was the last attempt."""
        self._failures += 1
        if self._failures == 1:
            self._failing_since = time.monotonic()
        seconds = self._seconds(error)
        remaining = self._deadline.remaining()
        out_of_time = remaining is not None and remaining <= seconds
        if out_of_time or self._is_last(seconds):
            raise error
        if self._failures == 1:
            self._on_break(error)
        return seconds

    def _is_last(self, seconds: float) -> bool:
        if self._is_live and self.has_begun:
            return time.monotonic() + seconds > self._failing_since + self._policy.patience
        return self._failures >= self._policy.attempts

    def _seconds(self, error: CallError) -> float:
        doubled = self._policy.first_wait * 2.0 ** min(self._failures - 1, _DOUBLINGS)
        # Clients that failed together should not come back together.
        spread = min(doubled, self._policy.longest_wait) * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret
        return max(spread, error.retry_after or 0.0)


def may_repeat(error: CallError, *, changes_nothing: bool) -> bool:
    """Say whether a unary call may be made again after ``error``.

    ``changes_nothing``: a second execution has no effect of its own, because the
    call only reads or carries a request id (contract rule 8).
    """
    if error.did_nothing:
        return True
    return changes_nothing and error.is_lost_connection
