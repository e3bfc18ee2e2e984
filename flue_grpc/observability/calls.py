"""What is known of a call when it ends, and who is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec


class FinishedCall(msgspec.Struct, frozen=True):
    """One RPC that is over.

    ``method`` is the full name without a leading slash, ``status`` the name of
    its code such as ``OK``, ``started_ns`` the wall clock. Sizes are those of
    the serialised messages; nothing is compressed unless a client asks for it.
    ``metadata`` is what the call brought and never leaves the process.
    """

    method: str
    status: str
    started_ns: int
    seconds: float
    received_bytes: int
    sent_bytes: int
    metadata: Sequence[tuple[str, str | bytes]] = ()


class CallObserver(Protocol):
    """Is told of every call twice; must be quick, must not raise."""

    def started(self, method: str) -> None:
        """Count a call that has begun."""

    def finished(self, call: FinishedCall) -> None:
        """Record a call that is over."""
