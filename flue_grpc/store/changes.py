"""Tells followers of a session that something was committed (contract rule 9)."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType


class Subscription:
    """What one follower waits on; ``event`` may be set by others too, to wake it.

    Subscribe before reading the backlog, clear ``event`` before each reading:
    then no message can be missed.
    """

    def __init__(self, changes: Changes, session_id: str) -> None:
        """Made by Changes.subscribe."""
        self.event = threading.Event()
        self.session_id = session_id
        self.is_deleted = False
        self._changes = changes

    def wait(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds; say whether something came, and clear it."""
        came = self.event.wait(timeout)
        self.event.clear()
        return came

    def close(self) -> None:
        """Hear nothing more; calling it again does nothing."""
        self._changes.unsubscribe(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Changes:
    """The followers of every session; safe from any thread."""

    def __init__(self) -> None:
        """Begin without followers."""
        self._lock = threading.Lock()
        self._followers: defaultdict[str, set[Subscription]] = defaultdict(set)

    def subscribe(self, session_id: str) -> Subscription:
        """Hear of each commit that appends to, updates or deletes the session.

        A deletion also sets ``is_deleted``, for good, even when the id is used
        again. The session need not exist.
        """
        subscription = Subscription(self, session_id)
        with self._lock:
            self._followers[session_id].add(subscription)
        return subscription

    @property
    def followers(self) -> int:
        """How many subscriptions are open."""
        with self._lock:
            return sum(map(len, self._followers.values()))

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forget a follower."""
        with self._lock:
            followers = self._followers.get(subscription.session_id)
            if followers is not None:
                followers.discard(subscription)
                if not followers:
                    del self._followers[subscription.session_id]

    def announce(self, touched: Iterable[str], deleted: Iterable[str]) -> None:
        """Wake the followers of the sessions that a commit has touched or deleted."""
        if not self._followers:
            return
        with self._lock:
            for session_id in deleted:
                for follower in self._followers.get(session_id, ()):
                    follower.is_deleted = True
                    follower.event.set()
            for session_id in touched:
                for follower in self._followers.get(session_id, ()):
                    follower.event.set()
