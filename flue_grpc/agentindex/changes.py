"""Telling who watches that sessions changed (contract rule 9)."""

from __future__ import annotations

import time
from threading import Event, Lock
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

SessionKey = tuple[str, str]
"""Tool and id."""


class Stamps:
    """Times in microseconds that never repeat and never go back."""

    def __init__(self, last: int) -> None:
        """Go on after ``last``."""
        self.last = last

    def next(self) -> int:
        """Return the time, or what follows the last one."""
        self.last = max(time.time_ns() // 1000, self.last + 1)
        return self.last


class Subscription:
    """The sessions that changed since they were last taken, each once, however often.

    ``event`` is set while there are any; a watcher may set it too, to wake itself.
    """

    def __init__(self, changes: Changes) -> None:
        """Use ``Changes.subscribe``."""
        self.event = Event()
        self._changes = changes
        self._pending: dict[SessionKey, None] = {}
        self._lock = Lock()

    def take(self) -> tuple[SessionKey, ...]:
        """Return the changed sessions in the order of their first change, and forget them."""
        with self._lock:
            self.event.clear()
            taken = tuple(self._pending)
            self._pending.clear()
        return taken

    def add(self, keys: Iterable[SessionKey]) -> None:
        """Remember that these changed, and wake the watcher."""
        with self._lock:
            self._pending.update(dict.fromkeys(keys))
            self.event.set()

    def close(self) -> None:
        """Hear nothing any more; calling it again does nothing."""
        self._changes.drop(self)

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
    """Hands each change to all subscriptions; memory is one key per changed session."""

    def __init__(self) -> None:
        """Start without subscriptions."""
        self._subscriptions: set[Subscription] = set()
        self._lock = Lock()

    def subscribe(self) -> Subscription:
        """Hear of every change from now on, until the subscription is closed."""
        subscription = Subscription(self)
        with self._lock:
            self._subscriptions.add(subscription)
        return subscription

    def drop(self, subscription: Subscription) -> None:
        """Forget a subscription."""
        with self._lock:
            self._subscriptions.discard(subscription)

    def publish(self, keys: Iterable[SessionKey]) -> None:
        """Tell every subscription."""
        with self._lock:
            subscriptions = tuple(self._subscriptions)
        changed = tuple(keys)
        for subscription in subscriptions if changed else ():
            subscription.add(changed)
