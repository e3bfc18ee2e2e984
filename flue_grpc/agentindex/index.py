"""The transcript index: one object that answers everything (spec/002, contract "AgentIndex").

Calls read what is in memory and in the index file; none of them waits for a sweep.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

from flue_grpc.agentindex import followers, pages
from flue_grpc.agentindex.adapters.registry import ADAPTERS
from flue_grpc.agentindex.background import Background
from flue_grpc.agentindex.file_events import FileEvents
from flue_grpc.agentindex.follow import Follow
from flue_grpc.agentindex.index_file import open_index_file
from flue_grpc.agentindex.lookup import Lookup, restored_catalog
from flue_grpc.agentindex.searches import Searches, SearchView
from flue_grpc.agentindex.snapshots import SnapshotView, count_hidden, list_sessions
from flue_grpc.agentindex.sweeper import Sweeper
from flue_grpc.agentindex.usage import UsageView, list_usage
from flue_grpc.agentindex.watching import Watch
from flue_grpc.errors import BadCombinationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from flue_grpc.agentindex.changes import Changes
    from flue_grpc.agentindex.file_events import Mode
    from flue_grpc.agentindex.follow import Beginning
    from flue_grpc.agentindex.followed_files import FollowedFiles
    from flue_grpc.agentindex.located import Located
    from flue_grpc.agentindex.ranked_search import RankedCursor, RankedSearch
    from flue_grpc.agentindex.settings import IndexSettings
    from flue_grpc.agentindex.snapshots import SnapshotCursor, SnapshotFilter
    from flue_grpc.agentindex.substring import SubstringCursor, SubstringSearch
    from flue_grpc.agentindex.sweeper import Sweeps
    from flue_grpc.agentindex.usage import UsageCursor, UsageQuery
    from flue_grpc.agentindex.values import Direction, Page, Summary
    from flue_grpc.agentindex.worker_messages import Progress
    from flue_grpc.cancel import Cancel


class AgentIndex:
    """A read-only index over the transcripts of one home; safe from any thread."""

    def __init__(self, settings: IndexSettings) -> None:
        """Load what the index file has; ``begin`` to sweep.

        Raises AlreadyRunningError when another process has the index of this home.
        """
        adapters = {adapter.tool: adapter for adapter in ADAPTERS}
        parts = tuple(follower.part for follower in followers.FOLLOWERS)
        self._file = open_index_file(settings.directory, settings.home, parts)
        try:
            self._catalog = restored_catalog(self._file)
            self._sweeper = Sweeper(settings, ADAPTERS, self._file, self._catalog, self._on_swept)
            self._background = Background(
                followers.FOLLOWERS if settings.ranked else (),
                adapters,
                self._file,
                self._catalog,
                settings.worker_bytes,
                self._sweeper.mend,
            )
            self._searches = Searches(self._file, self._catalog, adapters, settings.reading)
            self._lookup = Lookup(
                self._file,
                self._catalog,
                adapters,
                settings.reading,
                lambda: self.building,
                self._sweeper.mend,
            )
            self._events = FileEvents(
                lambda: self.directories, self.followed, self.refresh, self._look_everywhere
            )
        except BaseException:
            self._file.close()
            raise

    @classmethod
    def open(cls, settings: IndexSettings) -> AgentIndex:
        """Load what the index file has and begin the first sweep; raise as the class does."""
        index = cls(settings)
        index.begin()
        return index

    def begin(self) -> None:
        """Begin the first sweep, and listen to file events; once."""
        self._background.start()
        self._sweeper.start()
        self._events.start()

    def close(self) -> None:
        """End sweeps and workers, and give the index file up."""
        self._events.stop()
        self._sweeper.stop()
        self._background.stop()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def building(self) -> bool:
        """Whether a sweep runs or is about to; true until the first one is complete."""
        return self._sweeper.building

    @property
    def lags(self) -> bool:
        """Whether what follows the summaries, such as the RANKED index, is behind them."""
        return self._background.lags

    @property
    def progress(self) -> Progress:
        """How far a large sweep has come."""
        return self._sweeper.progress

    @property
    def sweeps(self) -> Sweeps:
        """What the sweeps so far took."""
        return self._sweeper.sweeps

    @property
    def transcripts(self) -> int:
        """How many sessions are indexed, listed or not."""
        return len(self._catalog)

    @property
    def changes(self) -> Changes:
        """Tells which sessions changed, listed or not."""
        return self._catalog.changes

    @property
    def directories(self) -> tuple[str, ...]:
        """The real paths of all roots, whether they exist or not."""
        return self._sweeper.directories

    def poke(self) -> None:
        """Ask for a sweep, at most once per interval (behaviour B1)."""
        self._sweeper.poke()

    def refresh(self, paths: Iterable[str]) -> None:
        """Look at files that were seen to change, at once and without a whole sweep."""
        seen = tuple(paths)
        # Of a directory that was renamed or removed the system names no file.
        lost = [path for path in seen if not os.path.lexists(path)]
        seen += self._catalog.below(lost)
        self.followed.wake(seen)
        self._sweeper.refresh(seen)

    def refresh_all(self) -> None:
        """Sweep soon, however long ago the last sweep was."""
        self._sweeper.demand()

    @property
    def followed(self) -> FollowedFiles:
        """The transcripts that somebody follows."""
        return self._catalog.followed

    @property
    def file_events(self) -> Mode:
        """How changed files are noticed."""
        return self._events.mode

    def follow(self, beginning: Beginning) -> Follow:
        """Follow a transcript as it is written. Raises as ``resolve``."""
        self.poke()
        return Follow(self, beginning)

    def watch(self, wanted: SnapshotFilter) -> Watch:
        """Watch the list of sessions; to be closed. Sweeps, so that it begins with the present."""
        self.poke()
        return Watch(self._catalog, wanted)

    def snapshot(
        self, wanted: SnapshotFilter, after: SnapshotCursor | None, cancel: Cancel
    ) -> SnapshotView:
        """List sessions, newest first, as they are now; poke the sweep for the next call.

        Raises BadCombinationError when ``since`` is not before ``until``.
        """
        _check_span(wanted.since, wanted.until)
        self.poke()
        view = self._catalog.view()
        items = list_sessions(view, wanted, after, cancel)
        return SnapshotView(self.building, count_hidden(view, wanted), items)

    def find(self, tool: str, session_id: str) -> Summary | None:
        """Return an indexed session, listed or not; None when there is none."""
        session = self._catalog.get((tool, session_id))
        return None if session is None else session.summary

    def resolve(self, tool: str, session_id: str) -> Summary:
        """Return an indexed session, listed or not; poke the sweep.

        Raises UnknownToolError, TranscriptNotFoundError.
        """
        self.poke()
        return self._lookup.session(tool, session_id).summary

    def path_of(self, tool: str, session_id: str) -> str | None:
        """Return where a session's transcript lies, None when there is none."""
        session = self._catalog.get((tool, session_id))
        return None if session is None else session.entry.path

    def locate(self, tool: str, session_id: str) -> Located:
        """Return where a transcript lies and what is known of it. Raises as ``resolve``."""
        return self._lookup.locate(tool, session_id)

    def read_page(  # noqa: PLR0913, PLR0917 - the fields of the request
        self,
        tool: str,
        session_id: str,
        offset: int | None,
        direction: Direction,
        limit: int,
        revision: str,
        cancel: Cancel,
    ) -> Page:
        """Return one page, as ``pages.read_page``. Raises also what ``resolve`` does."""
        self.poke()
        located = self._lookup.locate(tool, session_id)
        with self._lookup.reading():
            return pages.read_page(located, offset, direction, limit, revision, cancel)

    def read_transcript(  # noqa: PLR0913, PLR0917 - the fields of the request
        self,
        tool: str,
        session_id: str,
        offset: int | None,
        direction: Direction,
        limit: int,
        revision: str,
        cancel: Cancel,
    ) -> Iterator[Page]:
        """Yield consecutive pages, as ``pages.read_transcript``. Raises as ``read_page``."""
        self.poke()
        located = self._lookup.locate(tool, session_id)
        with self._lookup.reading():
            yield from pages.read_transcript(located, offset, direction, limit, revision, cancel)

    def read_message(  # noqa: PLR0913, PLR0917 - the fields of the request
        self,
        tool: str,
        session_id: str,
        offset: int,
        index: int,
        revision: str,
        cancel: Cancel,
    ) -> Iterator[str]:
        """Yield one whole text in pieces, as ``pages.read_message``. Raises as ``read_page``."""
        self.poke()
        located = self._lookup.locate(tool, session_id)
        with self._lookup.reading():
            yield from pages.read_message(located, offset, index, revision, cancel)

    def search(
        self, request: SubstringSearch, after: SubstringCursor | None, cancel: Cancel
    ) -> SearchView:
        """Look for a literal text, newest session first, as ``substring.search``."""
        self.poke()
        return SearchView(self.building, self._searches.substring(request, after, cancel))

    def search_ranked(
        self, request: RankedSearch, after: RankedCursor | None, cancel: Cancel
    ) -> SearchView:
        """Look for words, best match first, as ``RankedSearches.search``."""
        self.poke()
        items = self._lookup.guarded(self._searches.ranked(request, after, cancel))
        return SearchView(self.building or self._background.lags, items)

    def usage(self, query: UsageQuery, after: UsageCursor | None, cancel: Cancel) -> UsageView:
        """Count usage by groups, in the order of their keys; poke the sweep.

        Raises BadTimeZoneError, and BadCombinationError as ``snapshot``.
        """
        _check_span(query.since, query.until)
        self.poke()
        items = list_usage(self._file, self._catalog, query, after, cancel)
        return UsageView(self.building, self._lookup.guarded(items))

    def _on_swept(self) -> None:
        self._background.wake()

    def _look_everywhere(self) -> None:
        self.followed.wake_all()
        self._sweeper.demand()


def _check_span(since: int | None, until: int | None) -> None:
    if since is not None and until is not None and since >= until:
        raise BadCombinationError("since must be before until", "since")
