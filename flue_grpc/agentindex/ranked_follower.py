"""The RANKED index as the background work that follows the summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from flue_grpc.agentindex import ranked_fill, ranked_index

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import apsw

    from flue_grpc.agentindex.adapters.base import Adapter
    from flue_grpc.agentindex.records import Entry


class RankedFollower:
    """A ``followers.Follower``; it has no state of its own."""

    part: Final = ranked_index.RANKED_TABLES

    def lag(self, db: apsw.Connection, entries: Sequence[Entry]) -> int:
        """Return how many bytes of transcripts are not indexed yet, 1 for forgetting alone."""
        work = ranked_fill.remaining(entries, ranked_index.load_parts(db))
        return max(work.bytes, 1 if work.stale or work.behind else 0)

    def fill(
        self,
        db: apsw.Connection,
        entries: Sequence[Entry],
        adapters: Mapping[str, Adapter[Any]],
        pace: Callable[[], None],
    ) -> None:
        """Catch up with ``entries``. Raises apsw.Error, and what ``pace`` raises."""
        work = ranked_fill.remaining(entries, ranked_index.load_parts(db))
        ranked_fill.fill(db, work, adapters, pace)


RANKED: Final = RankedFollower()
