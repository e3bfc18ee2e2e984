"""Proof that a live stream lives, however often it wakes for nothing (contract rule 9)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from flue_grpc import limits

if TYPE_CHECKING:
    from threading import Event

    from flue_grpc.cancel import Cancel


class Heartbeat:
    """Tells when nothing was sent for HEARTBEAT_SECONDS; of one stream."""

    __slots__ = ("_due",)

    def __init__(self) -> None:
        """Begin to count."""
        self.beat()

    def beat(self) -> None:
        """Note that something was sent."""
        self._due = time.monotonic() + limits.HEARTBEAT_SECONDS

    def wait(self, event: Event, cancel: Cancel) -> bool:
        """Wait for ``event``; False when a heartbeat is due, which counts as sent.

        Raises what ``cancel`` raises.
        """
        left = self._due - time.monotonic()
        came = left > 0 and event.wait(left)
        cancel.check()
        if not came:
            self.beat()
        return came
