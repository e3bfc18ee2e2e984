"""Searching all transcripts by words, best hits first (behaviour B7).

The index tells where hits are; what a hit shows is read from its transcript at that
moment. One whose transcript has changed or gone since is left out, never an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import msgspec

from flue_grpc import limits
from flue_grpc.agentindex import ranked_index
from flue_grpc.agentindex.damage import as_written
from flue_grpc.agentindex.line_readers import OnwardReader
from flue_grpc.agentindex.opening import open_transcript
from flue_grpc.agentindex.ranked_query import Ranking
from flue_grpc.agentindex.ranked_reading import Halves, one_moment
from flue_grpc.agentindex.ranked_scope import Ordinals
from flue_grpc.agentindex.transcript_file import TranscriptFile
from flue_grpc.agentindex.values import Hit
from flue_grpc.errors import TranscriptNotFoundError
from flue_grpc.listing import Cursor, Pause, Placed, Stop
from flue_grpc.text.match import lookup, verifier
from flue_grpc.text.query import parse_ranked
from flue_grpc.text.ranking import ranked_page
from flue_grpc.text.snippets import opening_snippet, ranked_snippet

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    import apsw

    from flue_grpc.agentindex.catalog import Catalog, Session, View
    from flue_grpc.agentindex.escapes import KnownEscapes
    from flue_grpc.agentindex.hit_filter import HitFilter
    from flue_grpc.agentindex.index_file import IndexFile
    from flue_grpc.agentindex.ranked_index import State
    from flue_grpc.agentindex.substring_scan import Target
    from flue_grpc.agentindex.values import Message
    from flue_grpc.cancel import Cancel
    from flue_grpc.text.query import Query

Step = Placed[Hit] | Pause | Stop


class RankedCursor(Cursor, frozen=True, array_like=True):
    """The place behind the ``count``-th match, which is ``row``.

    ``epoch`` and ``fill`` tell what was indexed at the first response.
    """

    epoch: int
    fill: int
    count: int
    row: int


@dataclass(frozen=True, slots=True)
class RankedSearch:
    """What to look for; one call shows about ``limit`` hits, and reads about ``max_bytes``."""

    query: str
    wanted: HitFilter
    limit: int
    max_bytes: int = limits.SEARCH_BYTES


class RankedSearches:
    """Answers searches; safe from any thread."""

    def __init__(
        self, file: IndexFile, catalog: Catalog, target: Callable[[Session], Target]
    ) -> None:
        """Search what ``file`` has of the sessions in ``catalog``."""
        self._file = file
        self._catalog = catalog
        self._target = target
        self._cached: tuple[State, View, Ordinals] | None = None
        self._lock = Lock()

    def search(
        self, request: RankedSearch, after: RankedCursor | None, cancel: Cancel
    ) -> Generator[Step]:
        """Yield hits, best first, near ties newest first; perhaps ``Stop`` at the byte budget.

        The list ends without ``Stop`` when nothing is left. Raises EmptyQueryError,
        QueryTooLongError and BadQueryError at once, later apsw.Error and what ``cancel``
        raises.
        """
        query = parse_ranked(request.query)
        return self._hits(_Call(request, query, self._target, cancel), after)

    def escapes(self) -> Callable[[Session], KnownEscapes]:
        """Return what tells the escapes of a session's transcript. Raises apsw.Error."""
        with self._file.reader() as db, one_moment(db):
            return self._ordinals(db, ranked_index.load_state(db)).escapes

    def _hits(self, call: _Call, after: RankedCursor | None) -> Generator[Step]:
        has_more = not call.query.matches_nothing
        while has_more:
            found, has_more = self._find(call, after)
            for one in found:
                if after is not None and call.is_spent:
                    yield Stop(after, call.scanned)
                    return
                after = one.cursor
                hit = call.hit(one)
                if hit is not None:
                    yield Placed(hit, after)
        yield Pause(call.scanned)

    def _find(self, call: _Call, after: RankedCursor | None) -> tuple[list[_Found], bool]:
        """Return the next matches, and whether there may be more."""
        wanted = call.request.limit + 1  # one ahead tells whether it was the last
        with self._file.reader() as db, one_moment(db, call.cancel):
            state = ranked_index.load_state(db)
            ordinals = self._ordinals(db, state)
            fill = state.number
            if after is not None and after.epoch == state.epoch:
                fill = after.fill
            newest = fill if fill < state.number else None
            scope = ordinals.scope(call.request.wanted, newest)
            places = _Places(db, ordinals)
            halves = Halves(self._file, state, call.cancel)
            ranking = Ranking(db, halves, call.plan.expression, scope, ordinals)
            accepts = None if call.plan.verifier is None else call.judge(places)
            matches, start = ranked_page(
                lambda count: ranking.best(count, accepts),
                wanted,
                None if after is None else (after.count, after.row),
            )
            found = [
                _Found(
                    places.at(match.id),
                    match.score,
                    RankedCursor(state.epoch, fill, number, match.id),
                )
                for number, match in enumerate(matches, start + 1)
            ]
        return found, len(found) == wanted

    def _ordinals(self, db: apsw.Connection, state: State) -> Ordinals:
        view = self._catalog.view()
        with self._lock:
            if self._cached is not None and self._cached[:2] == (state, view):
                return self._cached[2]
        ordinals = Ordinals(view, ranked_index.load_parts(db))
        with self._lock:
            self._cached = state, view, ordinals
        return ordinals


@dataclass(frozen=True, slots=True)
class _Place:
    """A message: its session's, at ``offset`` of the transcript, ``index`` in the line."""

    session: Session
    offset: int
    index: int


@dataclass(frozen=True, slots=True)
class _Found:
    """A match, and the cursor behind it."""

    place: _Place
    score: float
    cursor: RankedCursor


class _Places:
    """Where the messages of rows lie, within the caller's transaction."""

    def __init__(self, db: apsw.Connection, ordinals: Ordinals) -> None:
        self._db = db
        self._ordinals = ordinals

    def at(self, row: int) -> _Place:
        query = "select offset, line_index from ranked_messages where id = ?"
        with as_written():
            (place,) = self._db.execute(query, (row,)).fetchall()
            return _Place(self._ordinals.session(row), *msgspec.convert(place, tuple[int, int]))


class _Call:
    """One call: what it looks for, and what it has read so far."""

    def __init__(
        self,
        request: RankedSearch,
        query: Query,
        target: Callable[[Session], Target],
        cancel: Cancel,
    ) -> None:
        self.request = request
        self.query = query
        self.plan = lookup(query)
        self.cancel = cancel
        self.scanned = 0
        self._whole = verifier(query)
        self._target = target
        self._line: tuple[Session, int] | None = None
        self._messages: Sequence[Message] = ()

    @property
    def is_spent(self) -> bool:
        return self.scanned >= self.request.max_bytes

    def judge(self, places: _Places) -> Callable[[int], bool]:
        """Return what verifies in a row's text what the index was not asked about."""
        check = self.plan.verifier

        def accepts(row: int) -> bool:
            message = self._message(places.at(row))
            return message is not None and (
                check is None or check.accepts(message.text, self.cancel)
            )

        return accepts

    def hit(self, found: _Found) -> Hit | None:
        """Return what a match shows; None when its message is not there any more."""
        message = self._message(found.place)
        if message is None or not self.request.wanted.accepts(message):
            return None
        if not self._whole.accepts(message.text, self.cancel):
            return None
        target = self._target(found.place.session)
        shown = ranked_snippet(message.text, self.query, target.snippet)
        snippet = shown or opening_snippet(message.text, target.snippet)
        summary = target.summary
        return Hit(
            tool=summary.tool,
            id=summary.id,
            cwd=summary.cwd,
            title=summary.title,
            ts=message.ts,
            role=message.role,
            kind=message.kind,
            snippet=snippet.text,
            offset=message.offset,
            index=message.index,
            text_offset=snippet.text_offset,
            ranges=snippet.ranges,
            score=found.score,
        )

    def _message(self, place: _Place) -> Message | None:
        if self._line != (place.session, place.offset):
            self._messages = self._read_line(place)
            self._line = place.session, place.offset
        return self._messages[place.index] if place.index < len(self._messages) else None

    def _read_line(self, place: _Place) -> Sequence[Message]:
        """Return the messages of a line; none when the transcript is another one by now."""
        target = self._target(place.session)
        try:
            with open_transcript(target.path, target.root) as opened:
                if not opened.has_revision(target.summary.revision):
                    return ()
                file = TranscriptFile(opened, self.cancel)
                line = _line_at(file, place.offset)
                self.scanned += file.bytes_read
        except (OSError, TranscriptNotFoundError):
            return ()
        return target.adapter.messages(line, place.offset, target.context)[0]


def _line_at(file: TranscriptFile, offset: int) -> bytes:
    """Return the line at ``offset``, reading little more than that; empty when there is none."""
    head = file.read(offset, limits.HIT_READ_BYTES)
    end = head.find(b"\n")
    if end >= 0:
        return head[:end]
    line = OnwardReader(file, offset).next(limits.LINE_BYTES + 1)
    return b"" if line is None else line.data
