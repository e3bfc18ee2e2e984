"""Following one transcript as another program writes it (contract rule 9, behaviour B3).

What a follower gets is what reading onward from its last ``next`` gives, again and
again: the same pages by the same code, so nothing is lost and nothing comes twice.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from threading import Event
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from flue_grpc import limits
from flue_grpc.agentindex import pages
from flue_grpc.agentindex.opening import open_transcript
from flue_grpc.agentindex.unfinished import UnfinishedLine
from flue_grpc.agentindex.values import Page
from flue_grpc.errors import CursorGoneError, TranscriptNotFoundError
from flue_grpc.heartbeat import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flue_grpc.agentindex.followed_files import FollowedFiles
    from flue_grpc.agentindex.located import Located
    from flue_grpc.agentindex.opening import OpenTranscript
    from flue_grpc.cancel import Cancel

_SEAM_BYTES: Final = 64  # before the place: an honest append leaves them as they were


class Step(msgspec.Struct, frozen=True):
    """A page, empty in a heartbeat; ``caught_up`` from when the present is reached."""

    page: Page
    caught_up: bool


class Source(Protocol):
    """What following needs of the index."""

    @property
    def followed(self) -> FollowedFiles:
        """Tells when a file changed."""

    def locate(self, tool: str, session_id: str) -> Located:
        """Raise TranscriptNotFoundError or UnknownToolError, or say where it lies."""

    def path_of(self, tool: str, session_id: str) -> str | None:
        """Return where the index has it now, None when it has it not; cheap."""

    def refresh_all(self) -> None:
        """Sweep soon, whenever the last sweep was."""


class Beginning(msgspec.Struct, frozen=True):
    """Where and how a follow begins: as a ReadTranscript of the same fields.

    ``limit`` is in messages, 0 for none.
    """

    tool: str
    id: str
    offset: int
    limit: int
    revision: str


class Follow:
    """One follow; ``event`` wakes it, and may be set by anyone."""

    def __init__(self, source: Source, beginning: Beginning) -> None:
        """Find the transcript; raises what ``locate`` raises."""
        self.event = Event()
        self._source = source
        self._tool, self._id = beginning.tool, beginning.id
        self._offset = self._size = beginning.offset
        self._revision = beginning.revision
        self._limit = beginning.limit
        self._given = 0
        self._seam = b""
        self._unfinished: UnfinishedLine | None = None
        self._heartbeat = Heartbeat()
        self._lost_at: float | None = None
        self._located = source.locate(self._tool, self._id)

    def steps(self, cancel: Cancel) -> Iterator[Step]:
        """Yield pages with messages as they are written, and heartbeats.

        Ends when ``limit`` messages were given. Raises CursorGoneError when bytes
        before the place were replaced or cut off, TranscriptNotFoundError when the
        transcript is gone, and what ``cancel`` raises.
        """
        caught_up = False
        while True:
            with self._source.followed.following(self._located.path, self.event):
                for step in self._while_it_lies_there(cancel, caught_up=caught_up):
                    caught_up = step.caught_up
                    yield step
                    self._heartbeat.beat()
            if self._is_done():
                return
            self._find_again(cancel)

    def _is_done(self) -> bool:
        return 0 < self._limit <= self._given

    def _while_it_lies_there(self, cancel: Cancel, *, caught_up: bool) -> Iterator[Step]:
        """Yield steps until the limit is reached or the file is not where it was."""
        while not self._is_done():
            self.event.clear()
            cancel.check()
            # Another file may have the id by now (behaviour B2), though this one can be read.
            if self._source.path_of(self._tool, self._id) != self._located.path:
                return
            try:
                for page in self._new_pages(cancel):
                    yield Step(page, caught_up)
                if not self._is_done() and not caught_up:
                    caught_up = True
                    yield Step(self._empty(), caught_up=True)
            except TranscriptNotFoundError:
                return
            if not self._is_done() and not self._heartbeat.wait(self.event, cancel):
                yield Step(self._empty(), caught_up=True)

    def _new_pages(self, cancel: Cancel) -> Iterator[Page]:
        """Yield what is new behind the place; take the place behind it."""
        if not self._may_have_news():
            return
        self._refresh_checkpoints()
        left = self._limit - self._given if self._limit else 0
        read = pages.read_transcript(
            self._located, self._offset, "forward", left, self._revision, cancel
        )
        eof = True
        for page in read:
            if self._given and self._limit and len(page.messages) > self._limit - self._given:
                self._given = self._limit  # the next line would pass it
                return
            self._given += len(page.messages)
            self._offset, self._size = page.next, page.file_size
            self._revision, eof = page.revision, page.eof
            if page.messages:
                yield page
        if self._limit and not eof:
            self._given = self._limit
        self._unfinished = UnfinishedLine(self._offset, self._size)
        self._seam = self._read_seam()
        self._lost_at = None

    def _refresh_checkpoints(self) -> None:
        """Learn what the index has read since: what lies behind it is parsed at each page."""
        if self._offset - self._located.checkpoints.end <= limits.FIRST_READ_BYTES:
            return
        with suppress(TranscriptNotFoundError):  # that is for the reading to find out
            located = self._source.locate(self._tool, self._id)
            if located.path == self._located.path:
                self._located = located

    def _may_have_news(self) -> bool:
        """Notice that what lies before the place is not what was given.

        Tell whether what lies behind it is worth reading.
        """
        if self._unfinished is None:
            return True
        with self._opened() as opened:
            if self._seam_of(opened) != self._seam:
                raise CursorGoneError("the transcript was replaced or cut since")
            if not opened.has_revision(self._revision) or self._unfinished.may_be_whole(opened):
                return True
            self._size = opened.size
        self._lost_at = None
        return False

    def _read_seam(self) -> bytes:
        with self._opened() as opened:
            return self._seam_of(opened)

    def _seam_of(self, opened: OpenTranscript) -> bytes:
        start = max(0, self._offset - _SEAM_BYTES)
        return os.pread(opened.fd, self._offset - start, start)

    @contextmanager
    def _opened(self) -> Iterator[OpenTranscript]:
        with open_transcript(self._located.path, self._located.root) as opened:
            try:
                yield opened
            except OSError as error:
                raise TranscriptNotFoundError("the transcript cannot be read") from error

    def _empty(self) -> Page:
        offset = self._offset
        return Page((), offset, offset, eof=True, file_size=self._size, revision=self._revision)

    def _find_again(self, cancel: Cancel) -> None:
        """Wait a moment for a file that was moved to turn up; raise when it does not.

        The moment lasts until the file is read again: one that can be opened and not
        read is lost as well.
        """
        if self._lost_at is None:
            self._lost_at = time.monotonic()
        elif self._is_long_lost():
            raise TranscriptNotFoundError("the transcript cannot be read")
        else:
            self._rest(cancel)
        self._source.refresh_all()
        while not self._is_found():
            self._rest(cancel)

    def _is_found(self) -> bool:
        """Look where the index has it now; raise when it is lost for too long."""
        try:
            self._located = self._source.locate(self._tool, self._id)
            open_transcript(self._located.path, self._located.root).close()
        except TranscriptNotFoundError:
            if self._is_long_lost():
                raise
            return False
        return True

    def _is_long_lost(self) -> bool:
        lost_at = self._lost_at
        return lost_at is not None and time.monotonic() - lost_at >= limits.MOVED_SECONDS

    def _rest(self, cancel: Cancel) -> None:
        self.event.wait(limits.POLL_SECONDS)
        self.event.clear()
        cancel.check()
