"""Searching all transcripts for a literal text (behaviour B7).

Sessions come newest first, the messages of each in the order of its file, and of each
message the first match. Files are read as they are at that moment: one that cannot be
read is skipped, one that grows or shrinks gives what it has.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from msgspec.structs import replace

from flue_grpc import limits
from flue_grpc.agentindex.catalog import sort_key
from flue_grpc.agentindex.opening import open_transcript
from flue_grpc.agentindex.substring_scan import Needle
from flue_grpc.agentindex.values import Hit
from flue_grpc.errors import TranscriptNotFoundError
from flue_grpc.listing import Cursor, Pause, Placed, Stop

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from flue_grpc.agentindex.catalog import Catalog, Session, SortKey
    from flue_grpc.agentindex.hit_filter import HitFilter
    from flue_grpc.agentindex.opening import OpenTranscript
    from flue_grpc.agentindex.substring_scan import Target
    from flue_grpc.cancel import Cancel

Step = Placed[Hit] | Pause | Stop


class SubstringCursor(Cursor, frozen=True):
    """A place in the walk over sessions, and in the session that stands there.

    The search goes on with message ``index`` of the line at ``offset`` of session
    ``tool``, ``id``, if its file is still of ``revision``, and then behind that session
    in the list; with ``offset`` None only there. ``moment`` is the stamp of the first
    response: sessions that changed after it may have been given before.
    """

    moment: int
    ended_at: int | None
    id: str
    tool: str
    offset: int | None = None
    index: int = 0
    revision: str = ""


@dataclass(frozen=True, slots=True)
class SubstringSearch:
    """What to look for; ``max_bytes`` of files are read in one call, or a little more."""

    query: str
    wanted: HitFilter
    max_bytes: int = limits.SEARCH_BYTES


def search(  # noqa: PLR0913, PLR0917 - the request, what it is asked of, and a clock
    catalog: Catalog,
    target: Callable[[Session], Target],
    request: SubstringSearch,
    after: SubstringCursor | None,
    cancel: Cancel,
    clock: Callable[[], float] = time.monotonic,
) -> Generator[Step]:
    """Yield hits; ``Pause`` where they should leave or a scan takes long; perhaps ``Stop``.

    The list ends without ``Stop`` when nothing is left. Raises EmptyQueryError and
    QueryTooLongError at once, later what ``cancel`` raises.
    """
    needle = Needle(request.query, request.wanted)
    return _Search(catalog, target, request, needle, cancel, clock).run(after)


class _Search:
    """One call: what it reads, and how far it has come."""

    __slots__ = ("_cancel", "_catalog", "_needle", "_pace", "_request", "_scanned", "_target")

    def __init__(  # noqa: PLR0913, PLR0917 - see `search`
        self,
        catalog: Catalog,
        target: Callable[[Session], Target],
        request: SubstringSearch,
        needle: Needle,
        cancel: Cancel,
        clock: Callable[[], float],
    ) -> None:
        self._catalog = catalog
        self._target = target
        self._request = request
        self._needle = needle
        self._cancel = cancel
        self._pace = _Pace(clock)
        self._scanned = 0

    def run(self, after: SubstringCursor | None) -> Generator[Step]:
        """Go on from ``after``, or from the newest session."""
        done: SubstringCursor | None = None
        for session, start in self._visits(after):
            if done is not None and self._is_spent:
                yield Stop(done, self._scanned)
                return
            for step in self._visit(session, start):
                yield step
                if isinstance(step, Stop):
                    return
            done = replace(start, offset=None, index=0, revision="")
        yield Pause(self._scanned)

    @property
    def _is_spent(self) -> bool:
        return self._scanned >= self._request.max_bytes

    def _visits(self, after: SubstringCursor | None) -> Iterator[tuple[Session, SubstringCursor]]:
        """Yield each session to search and where to begin in it."""
        view, wanted = self._catalog.view(), self._request.wanted
        sessions = view.sessions if wanted.include_subagents else view.mains
        moment, first = view.moment, 0
        if after is not None:
            place = sort_key(after.ended_at, after.id, after.tool)
            moment, first = after.moment, bisect_right(sessions, place, key=_sort_key)
            begun = self._catalog.get((after.tool, after.id))
            if begun is not None and after.offset is not None:
                yield begun, after
        for session in islice(sessions, first, None):
            summary = session.summary
            if session.changed <= moment and wanted.accepts_session(summary):
                yield (
                    session,
                    SubstringCursor(moment, summary.ended_at, summary.id, summary.tool, 0),
                )

    def _visit(self, session: Session, start: SubstringCursor) -> Iterator[Step]:
        """Search one session; one that cannot be read has nothing to find."""
        self._cancel.check()
        target = self._target(session)
        try:
            with open_transcript(target.path, target.root) as opened:
                if not start.revision or opened.has_revision(start.revision):
                    yield from self._steps(opened, target, start)
        except (OSError, TranscriptNotFoundError):
            return

    def _steps(
        self, opened: OpenTranscript, target: Target, start: SubstringCursor
    ) -> Iterator[Step]:
        begin = position = start.offset or 0
        for step in self._needle.look(opened, target, begin, start.index, self._cancel):
            if isinstance(step, Hit):
                self._pace.hold()
                yield Placed(step, _at(start, step.offset, step.index + 1, opened))
                continue
            self._scanned += max(0, step.position - position)
            position = max(position, step.position)
            if self._is_spent and begin < step.resume and position < opened.size:
                yield Stop(_at(start, step.resume, 0, opened), self._scanned)
                return
            if self._pace.is_due():
                yield Pause(self._scanned, _at(start, step.resume, 0, opened))


class _Pace:
    """When to speak: at the first hit, soon after others, and now and then in a long scan."""

    __slots__ = ("_clock", "_due", "_patience")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._due = clock() + limits.PROGRESS_SECONDS
        self._patience = 0.0

    def hold(self) -> None:
        """Note that a hit waits to be sent."""
        self._due = min(self._due, self._clock() + self._patience)
        self._patience = limits.SEARCH_FLUSH_SECONDS

    def is_due(self) -> bool:
        """Whether it is time; the next time counts from then."""
        now = self._clock()
        if now < self._due:
            return False
        self._due = now + limits.PROGRESS_SECONDS
        return True


def _at(start: SubstringCursor, offset: int, index: int, opened: OpenTranscript) -> SubstringCursor:
    return replace(start, offset=offset, index=index, revision=opened.revision)


def _sort_key(session: Session) -> SortKey:
    return session.sort_key
