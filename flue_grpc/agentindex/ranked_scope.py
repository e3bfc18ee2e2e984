"""Which rows of the RANKED index belong to which session, and which of them count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flue_grpc.agentindex.escapes import UNKNOWN
from flue_grpc.agentindex.ranked_index import MESSAGE_BITS, sorts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flue_grpc.agentindex.catalog import Session, View
    from flue_grpc.agentindex.escapes import KnownEscapes
    from flue_grpc.agentindex.hit_filter import HitFilter
    from flue_grpc.agentindex.ranked_index import Part

NO_TIME: Final = -(2**62)
"""Stands for the time of a message without one: behind all others."""

_MESSAGE_MASK: Final = (1 << MESSAGE_BITS) - 1


@dataclass(frozen=True, slots=True)
class Scope:
    """What a match must be, as SQL can tell; None and empty filter nothing.

    ``ordinals`` has a byte for each ordinal, 1 where its rows count. Rows of fills
    above ``fill`` are left out. Times are in microseconds, ``since`` ≤ ts < ``until``.
    """

    ordinals: bytes | None = None
    sorts: tuple[int, ...] = ()
    since: int | None = None
    until: int | None = None
    fill: int | None = None


class Ordinals:
    """The listed sessions of one view and the ordinals that stand for them.

    Filling gives ordinals out in any order. ``order`` is the same for the same
    transcripts: later messages of a session, and of newer sessions, come higher.
    """

    def __init__(self, view: View, parts: Mapping[int, Sequence[Part]]) -> None:
        """Relate a view to the parts, by tid.

        ``last`` becomes the highest ordinal; about half of all rows are below ``middle``.
        """
        self._sessions: dict[int, Session] = {}
        self._by_rank: list[int] = []
        for session in reversed(view.sessions):
            for part in parts.get(session.entry.tid, ()):
                self._sessions[part.ordinal] = session
                self._by_rank.append(part.ordinal)
        self._ranks = {ordinal: rank for rank, ordinal in enumerate(self._by_rank)}
        self._escapes = {tid: some[-1].escapes for tid, some in parts.items()}
        self._newest = {
            part.ordinal: NO_TIME if part.newest is None else part.newest
            for some in parts.values()
            for part in some
        }
        known = [part for some in parts.values() for part in some]
        self._count = len(known)
        self.last = max((part.ordinal for part in known), default=0)
        self.middle = _middle(known)

    def escapes(self, session: Session) -> KnownEscapes:
        """Return what is known of the bytes of a session's transcript."""
        return self._escapes.get(session.entry.tid, UNKNOWN)

    def session(self, row: int) -> Session:
        """Return the session that a row belongs to."""
        return self._sessions[row >> MESSAGE_BITS]

    def newest(self, row: int) -> int:
        """Return a time in microseconds that no message of the row's ordinal is later than."""
        return self._newest[row >> MESSAGE_BITS]

    def order(self, row: int) -> int:
        """Return the place of a row in the order of all."""
        return self._ranks[row >> MESSAGE_BITS] << MESSAGE_BITS | row & _MESSAGE_MASK

    def row(self, order: int) -> int:
        """Return the row at a place in the order of all."""
        return self._by_rank[order >> MESSAGE_BITS] << MESSAGE_BITS | order & _MESSAGE_MASK

    def scope(self, wanted: HitFilter, fill: int | None) -> Scope:
        """Return what ``wanted`` means for rows; rows of later fills are left out."""
        accepted = [
            ordinal
            for ordinal, session in self._sessions.items()
            if wanted.accepts_session(session.summary)
        ]
        ordinals = None
        if len(accepted) < self._count:
            marks = bytearray(self.last + 1)
            for ordinal in accepted:
                marks[ordinal] = 1
            ordinals = bytes(marks)
        is_open = not wanted.roles and not wanted.kinds
        sorts = () if is_open else sorts_of(wanted.roles, wanted.kinds)
        return Scope(ordinals, sorts, wanted.since, wanted.until, fill)


def _middle(parts: list[Part]) -> int:
    """Return the ordinal below which about half of all rows are."""
    left = sum(part.messages for part in parts) / 2
    for part in sorted(parts, key=lambda part: part.ordinal):
        left -= part.messages
        if left < 0:
            return part.ordinal + 1
    return 0
