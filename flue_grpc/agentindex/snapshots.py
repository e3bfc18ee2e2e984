"""The list of sessions, newest first (contract "Snapshot")."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flue_grpc.agentindex.catalog import sort_key
from flue_grpc.limits import BATCH_MAX_ITEMS
from flue_grpc.listing import Cursor, Placed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flue_grpc.agentindex.catalog import Session, View
    from flue_grpc.agentindex.values import Summary
    from flue_grpc.cancel import Cancel


@dataclass(frozen=True, slots=True)
class SnapshotFilter:
    """Which sessions are wanted; what is empty or None filters nothing.

    ``tools`` are names, one that no adapter has matches nothing. ``cwd`` is compared as
    a whole. A session is inside when its span overlaps ``since`` ≤ t < ``until``, in
    microseconds; one without times is left out when either is set. Subagents are
    hidden unless they are asked for.
    """

    tools: tuple[str, ...] = ()
    cwd: str = ""
    since: int | None = None
    until: int | None = None
    include_subagents: bool = False

    @property
    def takes_all(self) -> bool:
        """Whether nothing but subagents is left out."""
        return not (self.tools or self.cwd) and self.since is None and self.until is None

    def accepts(self, summary: Summary) -> bool:
        """Judge one session by all but its being a subagent."""
        if self.tools and summary.tool not in self.tools:
            return False
        if self.cwd and summary.cwd != self.cwd:
            return False
        if self.since is None and self.until is None:
            return True
        if summary.started_at is None or summary.ended_at is None:
            return False
        begins_early = self.until is None or summary.started_at < self.until
        return begins_early and (self.since is None or summary.ended_at >= self.since)


class SnapshotCursor(Cursor, frozen=True):
    """The place after one session, and the stamp of the list's first response.

    What changed after that stamp is left out: it may have been given before.
    """

    moment: int
    ended_at: int | None
    id: str
    tool: str


@dataclass(frozen=True, slots=True)
class SnapshotView:
    """What one Snapshot call answers.

    ``hidden_subagents`` counts those that only ``include_subagents`` would show.
    """

    building: bool
    hidden_subagents: int
    items: Iterator[Placed[Summary]]


def list_sessions(
    view: View, wanted: SnapshotFilter, after: SnapshotCursor | None, cancel: Cancel
) -> Iterator[Placed[Summary]]:
    """Yield the listed sessions behind ``after`` that are ``wanted``."""
    sessions = view.sessions if wanted.include_subagents else view.mains
    moment = view.moment if after is None else after.moment
    for number in range(_first_behind(sessions, after), len(sessions)):
        if number % BATCH_MAX_ITEMS == 0:
            cancel.check()
        session = sessions[number]
        summary = session.summary
        if session.changed <= moment and (wanted.takes_all or wanted.accepts(summary)):
            cursor = SnapshotCursor(moment, summary.ended_at, summary.id, summary.tool)
            yield Placed(summary, cursor)


def count_hidden(view: View, wanted: SnapshotFilter) -> int:
    """Count the listed subagents that are ``wanted`` but for being subagents."""
    if wanted.include_subagents:
        return 0
    if wanted.takes_all:
        return len(view.subagents)
    return sum(wanted.accepts(session.summary) for session in view.subagents)


def _first_behind(sessions: Sequence[Session], after: SnapshotCursor | None) -> int:
    if after is None:
        return 0
    place = sort_key(after.ended_at, after.id, after.tool)
    return bisect_right(sessions, place, key=lambda session: session.sort_key)
