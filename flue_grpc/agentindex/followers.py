"""Indexes that follow the summaries into the index file, behind every sweep.

A further one is a module with one object that fits ``Follower``, and one line here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from flue_grpc.agentindex.ranked_follower import RANKED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import apsw

    from flue_grpc.agentindex.adapters.base import Adapter
    from flue_grpc.agentindex.index_file import SchemaPart
    from flue_grpc.agentindex.records import Entry


class Follower(Protocol):
    """An index over what the transcripts say, kept in tables of its own.

    It recognises a transcript by ``Entry.tid``: what is stored under one only grows, and
    a tid that is not among the entries is to be forgotten. ``standing.offset`` tells how
    far the summaries have read.
    """

    @property
    def part(self) -> SchemaPart:
        """The tables."""

    def lag(self, db: apsw.Connection, entries: Sequence[Entry]) -> int:
        """Return how many bytes of transcripts are not followed yet, 1 for forgetting alone."""

    def fill(
        self,
        db: apsw.Connection,
        entries: Sequence[Entry],
        adapters: Mapping[str, Adapter[Any]],
        pace: Callable[[], None],
    ) -> None:
        """Catch up with ``entries`` in short transactions of its own on ``db``.

        ``pace`` is to be called at least per line; it rests, or raises CancelledError.
        What was committed before stays. Raises apsw.Error.
        """


FOLLOWERS: tuple[Follower, ...] = (RANKED,)
