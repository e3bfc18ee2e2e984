"""The transcripts that somebody follows, and waking those who do (contract rule 9)."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from threading import Event

Look = tuple[int, int, int]
"""What a changed file changes: its inode, size and time of modification."""


class FollowedFiles:
    """Events by path; safe from any thread."""

    def __init__(self) -> None:
        """Begin without followers."""
        self._lock = Lock()
        self._events: defaultdict[str, set[Event]] = defaultdict(set)
        self._looks: dict[str, Look | None] = {}

    @contextmanager
    def following(self, path: str, event: Event) -> Iterator[None]:
        """Have ``event`` set whenever the file at ``path`` may have changed."""
        with self._lock:
            self._events[path].add(event)
        try:
            yield
        finally:
            with self._lock:
                self._events[path].discard(event)
                if not self._events[path]:
                    del self._events[path]
                    self._looks.pop(path, None)

    @property
    def count(self) -> int:
        """How many files are followed."""
        return len(self._events)

    def wake(self, paths: Iterable[str]) -> None:
        """Wake the followers of these files."""
        if not self._events:
            return
        with self._lock:
            events = [event for path in paths for event in self._events.get(path, ())]
        for event in events:
            event.set()

    def wake_all(self) -> None:
        """Wake every follower."""
        with self._lock:
            paths = tuple(self._events)
        self.wake(paths)

    def changed(self) -> list[str]:
        """Look at every followed file; return those that differ from the last time.

        One that was not looked at before is among them: its follower may have read it
        a moment before it changed.
        """
        with self._lock:
            paths = list(self._events)
        looks = {path: _look(path) for path in paths}
        with self._lock:
            followed = {path: look for path, look in looks.items() if path in self._events}
            before = self._looks
            self._looks = followed
        return [
            path for path, look in followed.items() if path not in before or before[path] != look
        ]


def _look(path: str) -> Look | None:
    try:
        status = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - Path is far slower
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
