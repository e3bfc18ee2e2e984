"""Ledgers of one transcript: what was counted already, in memory and in the index file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from flue_grpc.agentindex.adapters.base import Ledger
    from flue_grpc.agentindex.values import TokenUsage


class FreshLedger:
    """Entries that are not stored yet, over those that are.

    An append looks up only its own few keys, so it costs the same however long the
    transcript is.
    """

    __slots__ = ("_stored", "fresh", "get", "put")

    def __init__(self, stored: Callable[[int], TokenUsage | None] | None) -> None:
        """Look up in ``stored`` what is not fresh; None when nothing is stored."""
        self.fresh: dict[int, TokenUsage] = {}
        self._stored = stored
        # Bound once: a cold parse asks for every line that has usage.
        self.get: Callable[[int], TokenUsage | None] = (
            self.fresh.get if stored is None else self._get
        )
        self.put: Callable[[int, TokenUsage], None] = self.fresh.__setitem__

    @property
    def is_whole(self) -> bool:
        """Whether the fresh entries are all there are."""
        return self._stored is None

    def spilled(self, stored: Callable[[int], TokenUsage | None]) -> None:
        """Forget the fresh entries: ``stored`` has them now."""
        self.fresh.clear()
        self._stored = stored
        self.get = self._get

    def _get(self, key: int) -> TokenUsage | None:
        found = self.fresh.get(key)
        if found is None and self._stored is not None:
            found = self._stored(key)
        return found


class TrialLedger:
    """Entries over another ledger, which they leave as it is."""

    __slots__ = ("_below", "_entries")

    def __init__(self, below: Ledger) -> None:
        """Read what is missing from ``below``."""
        self._below = below
        self._entries: dict[int, TokenUsage] = {}

    def get(self, key: int) -> TokenUsage | None:
        """Return what was put last under ``key``, here or below."""
        return self._entries.get(key) or self._below.get(key)

    def put(self, key: int, usage: TokenUsage) -> None:
        """Remember ``usage`` here."""
        self._entries[key] = usage
