"""All transcripts in memory, in the order of the list: what every answer comes from.

The sweep is the only writer. Readers take a ``View``, which never changes.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING

import msgspec

from flue_grpc.agentindex.changes import Changes, SessionKey, Stamps
from flue_grpc.agentindex.family import Family
from flue_grpc.agentindex.followed_files import FollowedFiles
from flue_grpc.agentindex.records import Entry
from flue_grpc.agentindex.values import Summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from flue_grpc.agentindex.discovery import Known

SortKey = tuple[int, str, str]
_SORT_SHARE = 8  # when more than this part of the list changes at once, it is sorted anew
_LAST = 2**63  # sorts sessions without timestamps behind all others


class Session(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An indexed session as answers show it: with what its subagents used.

    ``changed`` is a stamp: larger than that of every earlier change.
    """

    entry: Entry
    summary: Summary
    changed: int

    @property
    def key(self) -> SessionKey:
        """Tool and id."""
        return self.summary.tool, self.summary.id

    @property
    def sort_key(self) -> SortKey:
        """Newest first, then by id; the tool tells equal ids apart (behaviour B5)."""
        return sort_key(self.summary.ended_at, self.summary.id, self.summary.tool)


@dataclass(frozen=True, slots=True)
class View:
    """The listed sessions at one moment, newest first; ``moment`` is the last stamp.

    ``mains`` are those that are no subagents.
    """

    sessions: tuple[Session, ...]
    mains: tuple[Session, ...]
    subagents: tuple[Session, ...]
    moment: int


class Catalog:
    """The sessions by tool and id, by path, and in order."""

    def __init__(self) -> None:
        """Start empty."""
        self.changes = Changes()
        self.followed = FollowedFiles()
        self.known: Known = {}
        self._entries: dict[str, Entry] = {}
        self._rivals: dict[SessionKey, list[Entry]] = {}
        self._sessions: dict[SessionKey, Session] = {}
        self._family = Family()
        self._order = _Order()
        self._stamps = Stamps(0)
        self._lock = Lock()
        self._view: View | None = None

    def __len__(self) -> int:
        """Count the sessions, listed or not."""
        return len(self._sessions)

    def get(self, key: SessionKey) -> Session | None:
        """Return an indexed session, listed or not."""
        return self._sessions.get(key)

    def entry(self, path: str) -> Entry | None:
        """Return what the index has of the file at ``path``."""
        return self._entries.get(path)

    def entries(self) -> tuple[Entry, ...]:
        """Return all files, losers of duplicate ids and non-transcripts too."""
        with self._lock:
            return tuple(self._entries.values())

    def indexed(self) -> dict[int, tuple[Session, Session]]:
        """Return each indexed session and its topmost ancestor, by tid."""
        with self._lock:
            return {
                session.entry.tid: (session, self._sessions[self._family.topmost(key)])
                for key, session in self._sessions.items()
            }

    def vanished(self, paths: AbstractSet[str]) -> list[Entry]:
        """Return the files that are not among ``paths``."""
        return [entry for path, entry in self._entries.items() if path not in paths]

    def below(self, folders: Iterable[str]) -> tuple[str, ...]:
        """Return the paths of all files below ``folders``; names of files are none."""
        wanted = [folder for folder in folders if folder not in self._entries]
        if not wanted:
            return ()
        with self._lock:
            paths = sorted(self._entries)
        below: list[str] = []
        for folder in wanted:
            # The character behind "/" is "0".
            span = slice(bisect_left(paths, f"{folder}/"), bisect_left(paths, f"{folder}0"))
            below += paths[span]
        return tuple(below)

    def distrust(self, paths: Iterable[str] | None = None) -> None:
        """Take files, or all of them, for unknown: the next sweep reads them again."""
        if paths is None:
            self.known.clear()
            return
        for path in paths:
            if path in self._entries:
                self.known.get(self._entries[path].place, {}).pop(path, None)

    def view(self) -> View:
        """Return the present view; cheap while nothing changes."""
        with self._lock:
            if self._view is None:
                sessions = tuple(self._order.sessions)
                self._view = View(
                    sessions,
                    tuple(s for s in sessions if not s.summary.is_subagent),
                    tuple(s for s in sessions if s.summary.is_subagent),
                    self._stamps.last,
                )
            return self._view

    def restore(self, entries: Iterable[Entry]) -> None:
        """Fill an empty catalog from the index file; stamps go on from there."""
        loaded = list(entries)
        stamps = {entry.tid: entry.changed for entry in loaded}
        self._stamps = Stamps(max(stamps.values(), default=0))
        with self._lock:
            for entry in loaded:
                self._learn(entry)
            for key, rivals in self._rivals.items():
                self._family.put(key, _summary(_winner(rivals)))
            self._family.refresh(self._rivals)
            for key in self._rivals:
                self._show(key, None, stamps)
            self._order.replace((), _listed(self._sessions.values()))
            self._view = None

    def apply(self, entries: Iterable[Entry], vanished: Iterable[str] = ()) -> None:
        """Take in parsed files and drop vanished paths, then tell who watches."""
        parsed, dropped = tuple(entries), tuple(vanished)
        self.changes.publish(self._apply(parsed, dropped, {}))
        self.followed.wake((*self._rivals_of(parsed), *dropped))

    def _apply(
        self, entries: Iterable[Entry], vanished: Iterable[str], stamps: dict[int, int]
    ) -> list[SessionKey]:
        with self._lock:
            touched: list[SessionKey | None] = [self._forget(path) for path in vanished]
            for entry in entries:
                touched += (self._forget(entry.path), self._learn(entry))
            affected = self._relate(dict.fromkeys(key for key in touched if key is not None))
            before = [self._sessions.pop(key, None) for key in affected]
            changed = [
                key
                for key, session in zip(affected, before, strict=True)
                if self._show(key, session, stamps)
            ]
            after = [self._sessions.get(key) for key in affected]
            self._order.replace(_listed(before), _listed(after))
            self._view = None
            return changed

    def _rivals_of(self, entries: Iterable[Entry]) -> list[str]:
        """Name these files and all with the same ids: who follows one may have to leave it."""
        with self._lock:
            rivals = (self._rivals.get(key, ()) for key in filter(None, map(_key, entries)))
            return [entry.path for entry in chain(entries, *rivals)]

    def _forget(self, path: str) -> SessionKey | None:
        entry = self._entries.pop(path, None)
        if entry is None:
            return None
        self.known.get(entry.place, {}).pop(path, None)
        key = _key(entry)
        if key is not None:
            self._rivals[key].remove(entry)
        return key

    def _learn(self, entry: Entry) -> SessionKey | None:
        self._entries[entry.path] = entry
        self.known.setdefault(entry.place, {})[entry.path] = entry.record
        key = _key(entry)
        if key is not None:
            self._rivals.setdefault(key, []).append(entry)
        return key

    def _relate(self, touched: Iterable[SessionKey]) -> list[SessionKey]:
        """Bring the family up to date; return every session that may look different."""
        affected: dict[SessionKey, None] = {}
        for key in touched:
            affected.update(dict.fromkeys(self._family.lineage(key)))
            rivals = self._rivals.get(key)
            self._family.put(key, _winner(rivals).record.summary if rivals else None)
            affected.update(dict.fromkeys(self._family.lineage(key)))
        self._family.refresh(affected)
        return list(affected)

    def _show(self, key: SessionKey, before: Session | None, stamps: dict[int, int]) -> bool:
        """Make the session what its files say; return whether it looks different."""
        rivals = self._rivals.get(key)
        if not rivals:
            self._rivals.pop(key, None)
            return before is not None
        entry = _winner(rivals)
        summary = self._with_subagents(key, entry)
        if before is not None and before.summary == summary:
            self._sessions[key] = Session(entry, summary, before.changed)
            return False
        stamp = stamps.get(entry.tid) or self._stamps.next()
        self._sessions[key] = Session(entry, summary, stamp)
        return True

    def _with_subagents(self, key: SessionKey, entry: Entry) -> Summary:
        summary = _summary(entry)
        below = self._family.below(key)
        if below == summary.subagent_tokens:
            return summary
        return msgspec.structs.replace(summary, subagent_tokens=below)


class _Order:
    """The listed sessions, sorted; few changes are put in place, many sorted in."""

    def __init__(self) -> None:
        self.sessions: list[Session] = []
        self._keys: list[SortKey] = []

    def replace(self, gone: Sequence[Session], new: Sequence[Session]) -> None:
        if len(gone) + len(new) > len(self.sessions) // _SORT_SHARE:
            self._sort_in(gone, new)
            return
        for session in gone:
            place = bisect_left(self._keys, session.sort_key)
            del self._keys[place], self.sessions[place]
        for session in new:
            place = bisect_left(self._keys, session.sort_key)
            self._keys.insert(place, session.sort_key)
            self.sessions.insert(place, session)

    def _sort_in(self, gone: Sequence[Session], new: Sequence[Session]) -> None:
        left = {session.sort_key: session for session in self.sessions}
        for session in gone:
            del left[session.sort_key]
        left.update((session.sort_key, session) for session in new)
        self._keys = sorted(left)
        self.sessions = [left[key] for key in self._keys]


def sort_key(ended_at: int | None, session_id: str, tool: str) -> SortKey:
    """Return what the list is ordered by; times are in microseconds."""
    return (_LAST if ended_at is None else -ended_at, session_id, tool)


def _listed(sessions: Iterable[Session | None]) -> list[Session]:
    return [one for one in sessions if one is not None and one.summary.is_listed]


def _winner(rivals: Sequence[Entry]) -> Entry:
    return rivals[0] if len(rivals) == 1 else min(rivals, key=_precedence)


def _key(entry: Entry) -> SessionKey | None:
    summary = entry.record.summary
    return (summary.tool, summary.id) if summary is not None else None


def _summary(entry: Entry) -> Summary:
    summary = entry.record.summary
    if summary is None:
        raise ValueError("only transcripts have a session")
    return summary


def _precedence(entry: Entry) -> tuple[int, int, int, str]:
    """Rank files of one id: the lowest wins (behaviour B2)."""
    record = entry.record
    size = record.summary.file_size if record.summary is not None else 0
    return (record.source.rank, -record.key.mtime_ns, -size, entry.path)
