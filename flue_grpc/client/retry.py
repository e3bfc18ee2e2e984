"""When a call is made again, and how long that waits."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import grpc
import msgspec

if TYPE_CHECKING:
    from flue_grpc.client.failures import CallError


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """``attempts`` calls in a row without progress, waiting longer before each.

    ``first_wait`` and ``longest_wait`` are seconds; each wait doubles. A time that
    the server names in RetryInfo is never undercut.
    """

    attempts: int = 8
    first_wait: float = 0.1
    longest_wait: float = 2.0


class Deadline:
    """The time that a whole call may take, repeats and resumes included."""

    def __init__(self, seconds: float | None) -> None:
        """Start the clock; None never ends."""
        self._end = None if seconds is None else time.monotonic() + seconds

    def remaining(self) -> float | None:
        """Seconds that are left, at least 0; None when there is no end."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())


class Backoff:
    """The repeats of one call: it waits, or raises when there is no use."""

    def __init__(self, policy: RetryPolicy, deadline: Deadline) -> None:
        """Begin with no failure seen."""
        self._policy = policy
        self._deadline = deadline
        self._failures = 0

    def progressed(self) -> None:
        """Something arrived: earlier failures no longer count."""
        self._failures = 0

    def wait(self, error: CallError) -> None:
        """Wait before the next attempt; raises ``error`` when it was the last one."""
        self._failures += 1
        seconds = self._seconds(error)
        remaining = self._deadline.remaining()
        out_of_time = remaining is not None and remaining <= seconds
        if self._failures >= self._policy.attempts or out_of_time:
            raise error
        time.sleep(seconds)

    def _seconds(self, error: CallError) -> float:
        doubled = self._policy.first_wait * 2.0 ** (self._failures - 1)
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
    return changes_nothing and error.code is grpc.StatusCode.UNAVAILABLE
