"""Finding what a prefilter says in bytes: with the standard library, or with hyperscan."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

from flue_grpc.agentindex.escapes import Escape, has_controls
from flue_grpc.agentindex.prefilter import as_pattern

if TYPE_CHECKING:
    from flue_grpc.agentindex.prefilter import Prefilter

_Search = Callable[[bytes, int], re.Match[bytes] | None]

_NOWHERE: Final = 1 << 62
_CONTROL: Final = int(Escape.CONTROL)
_FEWEST_CHARACTERS: Final = 3  # shorter literals match too often for calls back to Python


class Matcher(Protocol):
    """Looks into one window of bytes at a time; used by one thread."""

    def load(self, window: bytes, kinds: int) -> None:
        """Take the next window, which may hold these kinds of escape."""

    def next(self, start: int) -> int:
        """Return a position inside the next match at or after ``start``, else -1.

        Starts do not decrease from call to call on one window.
        """


def matcher_for(prefilter: Prefilter) -> Matcher:
    """Return the fastest matcher that is installed; all of them find the same lines."""
    if prefilter.takes_everything:
        return EveryByte()
    if has_hyperscan() and len(prefilter.literal or prefilter.pattern) >= _FEWEST_CHARACTERS:
        return HyperscanMatcher(prefilter)
    return PlainMatcher(prefilter)


class EveryByte:
    """Matches everywhere, for a query that has nothing to look for in bytes."""

    __slots__ = ("_size",)

    def __init__(self) -> None:
        """Start without a window."""
        self._size = 0

    def load(self, window: bytes, kinds: int) -> None:  # noqa: ARG002  (the protocol's)
        """Take the next window."""
        self._size = len(window)

    def next(self, start: int) -> int:
        """Return ``start`` while it lies in the window."""
        return start if start < self._size else -1


class PlainMatcher:
    """Looks for each needle in turn."""

    __slots__ = ("_found", "_literal", "_patterns", "_prefilter", "_relevant", "_searches")

    def __init__(self, prefilter: Prefilter) -> None:
        """Look for what ``prefilter`` says."""
        self._prefilter = prefilter
        self._relevant = prefilter.relevant
        self._literal = prefilter.literal
        self._patterns: dict[int, tuple[_Search, ...]] = {}
        self._searches: list[Callable[[int], int]] = []
        self._found: list[int] = []

    def load(self, window: bytes, kinds: int) -> None:
        """Take the next window; it is searched only for what its kinds call for."""
        kinds &= self._relevant
        if kinds & _CONTROL and not has_controls(window):
            kinds &= ~_CONTROL
        patterns = self._patterns.get(kinds)
        if patterns is None:
            sources = self._prefilter.patterns(kinds)
            patterns = self._patterns[kinds] = tuple(re.compile(s).search for s in sources)
        self._searches = [_finder(search, window) for search in patterns]
        if self._literal:
            is_cased = self._literal.upper() != self._literal
            lowered = window.lower() if is_cased else window
            self._searches.append(_literal_finder(self._literal, lowered))
        self._found = [-1] * len(self._searches)

    def next(self, start: int) -> int:
        """Return where the next match begins."""
        found = self._found
        for number, position in enumerate(found):
            if position < start:
                found[number] = self._searches[number](start)
        nearest = min(found)
        return nearest if nearest < _NOWHERE else -1


class HyperscanMatcher:
    """Looks for all needles in one pass; needs the ``fast`` extra."""

    __slots__ = ("_databases", "_ends", "_prefilter", "_relevant")

    def __init__(self, prefilter: Prefilter) -> None:
        """Look for what ``prefilter`` says."""
        self._prefilter = prefilter
        self._relevant = prefilter.relevant
        self._databases: dict[int, Any] = {}
        self._ends: list[int] = []

    def load(self, window: bytes, kinds: int) -> None:
        """Take the next window and scan it."""
        kinds &= self._relevant
        database = self._databases.get(kinds)
        if database is None:
            database = self._databases[kinds] = _compile(self._prefilter, kinds)
        ends: list[int] = []
        database.scan(window, match_event_handler=lambda _id, _from, end, *_: ends.append(end - 1))
        ends.sort()
        self._ends = ends

    def next(self, start: int) -> int:
        """Return where the next match ends."""
        place = bisect_left(self._ends, start)
        return self._ends[place] if place < len(self._ends) else -1


@cache
def has_hyperscan() -> bool:
    """Say whether the ``fast`` extra is installed and runs on this processor."""
    try:
        _compile_sources([(rb"\x61", 0)])
    except Exception:  # noqa: BLE001  (whatever is wrong with it, there is another way)
        return False
    return True


def _compile(prefilter: Prefilter, kinds: int) -> Any:  # noqa: ANN401  (untyped library)
    hyperscan = import_module("hyperscan")
    sources = [(source, 0) for source in prefilter.patterns(kinds)]
    if prefilter.literal:
        sources.append((as_pattern(prefilter.literal), hyperscan.HS_FLAG_CASELESS))
    return _compile_sources(sources)


def _compile_sources(sources: list[tuple[bytes, int]]) -> Any:  # noqa: ANN401  (untyped library)
    database = import_module("hyperscan").Database()
    expressions, flags = zip(*sources, strict=True)
    database.compile(expressions=list(expressions), flags=list(flags))
    return database


def _finder(search: _Search, window: bytes) -> Callable[[int], int]:
    def find(start: int) -> int:
        match = search(window, start)
        return match.start() if match else _NOWHERE

    return find


def _literal_finder(literal: bytes, window: bytes) -> Callable[[int], int]:
    def find(start: int) -> int:
        position = window.find(literal, start)
        return position if position >= 0 else _NOWHERE

    return find
