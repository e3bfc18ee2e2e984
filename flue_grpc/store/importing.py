"""Imports an exported file into a database at rest, all or nothing per session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import apsw
import msgspec

from flue_grpc.errors import FlueError
from flue_grpc.store import message_rows, messages, sessions, transfer_lines
from flue_grpc.store.checkpoints import Checkpoints
from flue_grpc.store.clock import Clock
from flue_grpc.store.connections import first_row
from flue_grpc.store.sqlite_errors import translate
from flue_grpc.store.text_index import MESSAGE_INDEX
from flue_grpc.store.transfer_lines import MessageLine, SessionLine
from flue_grpc.store.values import MAX_TIME, MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Iterable

_INSERT_SESSION: Final = "INSERT INTO sessions VALUES (?, ?, ?, ?)"


class Refusal(msgspec.Struct, frozen=True):
    """A session that was not imported, or a line that belongs to none; lines count from 1."""

    line: int
    session_id: str
    reason: str


class Imported(msgspec.Struct, frozen=True):
    """What came of an import."""

    sessions: int
    messages: int
    refusals: tuple[Refusal, ...]


class _Session:
    """The session being imported: whole at its last message, undone at any error."""

    def __init__(self, connection: apsw.Connection, clock: Clock, line: SessionLine) -> None:
        self.id = line.id
        self.left = line.messages
        self._connection = connection
        self._clock = clock
        sessions.check_id(line.id)
        sessions.check_title(line.title)
        session = transfer_lines.session_of(line)
        self._horizon = clock.horizon()
        self._latest = MIN_TIME
        self._see(session.created_at)
        self._see(session.updated_at)
        connection.execute("BEGIN IMMEDIATE")
        if first_row(connection, "SELECT 1 FROM sessions WHERE id = ?", (line.id,)) is not None:
            raise ValueError("a session with this id exists")
        connection.execute(_INSERT_SESSION, msgspec.structs.astuple(session))

    def add(self, line: MessageLine) -> None:
        """Insert a message under a new id, at its own time."""
        if line.session_id != self.id:
            raise ValueError(f"a message of another session, {line.session_id}")
        if not self.left:
            raise ValueError("more messages than the session's line tells")
        draft = transfer_lines.draft_of(line)
        messages.check_size(draft)
        created_at = transfer_lines.created_at(line)
        self._see(created_at)
        self._connection.execute(
            message_rows.INSERT, message_rows.insert_row(self.id, created_at, draft)
        )
        if messages.is_searchable(draft.role, draft.content, draft.name):
            number = self._connection.last_insert_rowid()
            MESSAGE_INDEX.add(self._connection, number, draft.content)
        self.left -= 1

    def _see(self, moment: int) -> None:
        if not MIN_TIME <= moment <= MAX_TIME:
            raise ValueError("a time outside the years 1 to 9999")
        if moment <= self._horizon:
            self._latest = max(self._latest, moment)

    def finish(self) -> None:
        """Commit; later writes come after all times but those that are far ahead of now."""
        self._clock.advance(self._latest)
        self._clock.save(self._connection)
        self._connection.execute("COMMIT")
        self._clock.saved()


class Importer:
    """Takes the lines of a file one after another; ``finish`` tells what came of them."""

    def __init__(self, connection: apsw.Connection) -> None:
        """Write to ``connection``, which nothing else uses."""
        self._connection = connection
        self._clock = Clock.load(connection)
        self._checkpoints = Checkpoints(connection)
        self._current: _Session | None = None
        self._is_skipping = False
        self._begun = 0
        self._counts = [0, 0]
        self._refusals: list[Refusal] = []

    def run(self, lines: Iterable[bytes]) -> Imported:
        """Import all; a session with a fault is refused and the next one is tried.

        Raises the errors of a database that cannot be written; then the session
        at hand was not imported.
        """
        number = 0
        try:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    self._take(number, line)
            self._end(number)
        except apsw.Error as error:
            raise translate(error) from error
        finally:
            self._undo()
        return Imported(self._counts[0], self._counts[1], tuple(self._refusals))

    def _take(self, number: int, raw: bytes) -> None:
        try:
            line = transfer_lines.read_line(raw)
        except ValueError as error:
            self._end_if_whole(number)
            self._refuse(number, str(error))
            return
        if isinstance(line, SessionLine):
            self._end(number - 1)
            self._begin(number, line)
        else:
            if self._current is not None and line.session_id != self._current.id:
                self._end_if_whole(number)
            self._add(number, line)

    def _begin(self, number: int, line: SessionLine) -> None:
        self._is_skipping = False
        self._begun = line.messages
        try:
            self._current = _Session(self._connection, self._clock, line)
        except (ValueError, FlueError) as error:
            self._refuse(number, str(error), line.id)

    def _add(self, number: int, line: MessageLine) -> None:
        if self._current is None:
            if not self._is_skipping:
                self._refuse(number, "a message without the line of its session before it")
            return
        try:
            self._current.add(line)
        except (ValueError, FlueError) as error:
            self._refuse(number, str(error))

    def _end_if_whole(self, number: int) -> None:
        """Let a fault that follows a whole session not be the session's."""
        if self._current is not None and not self._current.left:
            self._end(number)

    def _end(self, number: int) -> None:
        """Commit the session at hand, if it is whole."""
        if self._current is None:
            return
        if self._current.left:
            self._refuse(number, f"{self._current.left} of its messages are missing")
            return
        self._current.finish()
        self._current = None
        self._is_skipping = False
        self._counts[0] += 1
        self._counts[1] += self._begun
        self._checkpoints.run_if_large()

    def _refuse(self, number: int, reason: str, session_id: str = "") -> None:
        if self._current is not None:
            session_id = self._current.id
        self._undo()
        # One reason for each session is enough.
        if not self._is_skipping or session_id:
            self._refusals.append(Refusal(number, session_id, reason))
        self._is_skipping = True

    def _undo(self) -> None:
        self._current = None
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
