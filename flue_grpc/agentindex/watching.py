"""Watching the list of sessions change (contract "Watch", rule 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from flue_grpc import limits
from flue_grpc.agentindex.values import Summary
from flue_grpc.heartbeat import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Event

    from flue_grpc.agentindex.catalog import Catalog, Session
    from flue_grpc.agentindex.changes import SessionKey
    from flue_grpc.agentindex.snapshots import SnapshotFilter
    from flue_grpc.cancel import Cancel


class Added(msgspec.Struct, frozen=True):
    """A session that the watcher has not seen."""

    summary: Summary


class Updated(msgspec.Struct, frozen=True):
    """A session that looks different now."""

    summary: Summary


class Removed(msgspec.Struct, frozen=True):
    """A session that is listed no more."""

    tool: str
    id: str


SessionEvent = Added | Updated | Removed


class Watch:
    """One watch; ``event`` wakes it, and may be set by anyone.

    Memory is one key for each session that was shown, and one for each that changed
    since the client last took something: changes of one session are merged.
    """

    def __init__(self, catalog: Catalog, wanted: SnapshotFilter) -> None:
        """Hear of every change from now on; ``close`` ends it."""
        self._catalog = catalog
        self._wanted = wanted
        self._subscription = catalog.changes.subscribe()
        self._shown: set[SessionKey] = set()
        self._heartbeat = Heartbeat()

    @property
    def event(self) -> Event:
        """What wakes the watch."""
        return self._subscription.event

    def close(self) -> None:
        """Hear nothing more; calling it again does nothing."""
        self._subscription.close()

    def backlog(self, cancel: Cancel) -> Iterator[SessionEvent]:
        """Yield every session as it is now, newest first."""
        for number, session in enumerate(self._catalog.view().sessions):
            if number % limits.BATCH_MAX_ITEMS == 0:
                cancel.check()
            yield from self._judge(session.key, session)
        self._heartbeat.beat()

    def wait(self, cancel: Cancel) -> bool:
        """Wait for changes; False when it is time for a heartbeat."""
        return self._heartbeat.wait(self.event, cancel)

    def changes(self, cancel: Cancel) -> Iterator[SessionEvent]:
        """Yield what changed since the last time, each session once."""
        changed = self._subscription.take()
        cancel.check()
        for key in changed:
            for event in self._judge(key, self._catalog.get(key)):
                yield event
                self._heartbeat.beat()

    def _judge(self, key: SessionKey, session: Session | None) -> Iterator[SessionEvent]:
        summary = session.summary if session is not None else None
        if summary is not None and self._is_wanted(summary):
            if key in self._shown:
                yield Updated(summary)
            else:
                self._shown.add(key)
                yield Added(summary)
        elif key in self._shown:
            self._shown.discard(key)
            yield Removed(*key)

    def _is_wanted(self, summary: Summary) -> bool:
        if not summary.is_listed or (summary.is_subagent and not self._wanted.include_subagents):
            return False
        return self._wanted.accepts(summary)
