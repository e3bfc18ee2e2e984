"""How work learns that nobody waits for it any more (contract rule 4)."""

from __future__ import annotations

from typing import Protocol


class Cancel(Protocol):
    """Asked often by long work: per line of a transcript, per 1,000 SQL steps."""

    def is_cancelled(self) -> bool:
        """Say whether to stop; cheap, never blocks, safe from any thread."""

    def check(self) -> None:
        """Raise CancelledError or DeadlineError when the work should stop."""


class NeverCancelled:
    """For work that nobody can call off, such as a sweep or a command."""

    def is_cancelled(self) -> bool:
        """Say no."""
        return False

    def check(self) -> None:
        """Do nothing."""


NEVER = NeverCancelled()
