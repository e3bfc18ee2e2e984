"""Sessions: the statements of their writes and reads (behaviour A2)."""

from __future__ import annotations

import secrets
import unicodedata
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc import limits
from flue_grpc.errors import (
    BadIdError,
    SessionExistsError,
    SessionNotFoundError,
    ValueTooLargeError,
)
from flue_grpc.listing import Cursor, Placed
from flue_grpc.store.connections import first_row
from flue_grpc.store.paging import read_batch
from flue_grpc.store.text_index import MESSAGE_INDEX
from flue_grpc.store.values import MAX_TIME, SUBAGENT_TITLE_PREFIX, Scope, Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw

    from flue_grpc.cancel import Cancel
    from flue_grpc.store.batch import Batch
    from flue_grpc.store.connections import Row
    from flue_grpc.store.readers import Readers

_COLUMNS: Final = "id, title, created_at, updated_at"
IS_SUBAGENT: Final = f"substr(title, 1, {len(SUBAGENT_TITLE_PREFIX)}) = '{SUBAGENT_TITLE_PREFIX}'"


class SessionCursor(Cursor, frozen=True, array_like=True):
    """The place after a session; ``moment`` is the latest time at the first response.

    Whatever changes later moves before it, but for a session whose time was far
    ahead, which an import or adoption brought.
    """

    updated_at: int
    created_at: int
    id: str
    moment: int = MAX_TIME


class NewSession(msgspec.Struct, frozen=True):
    """The body of CreateSession."""

    id: str
    title: str

    def make(self, batch: Batch) -> Session:
        """Insert it; raises SessionExistsError when the id is taken."""
        session_id = self.id or f"ses_{secrets.token_hex(8)}"
        if batch.row("SELECT 1 FROM sessions WHERE id = ?", (session_id,)) is not None:
            raise SessionExistsError("the session id is taken", {"session_id": session_id})
        now = batch.now()
        batch.execute(
            "INSERT INTO sessions VALUES (?, ?, ?, ?)", (session_id, self.title, now, now)
        )
        return Session(session_id, self.title, now, now)

    def name(self, made: Session) -> str:
        """Return the session's id, and when it was created: a later one may have the id too."""
        return f"{made.id}\n{made.created_at}"

    def find(self, batch: Batch, name: str) -> Session:
        """Return the session as it is now."""
        session_id, _, created_at = name.partition("\n")
        session = get(batch.connection, session_id)
        # Earlier versions kept the id alone.
        if created_at not in ("", str(session.created_at)):
            raise not_found(session_id)
        return session


def check_id(session_id: str) -> None:
    """Raise BadIdError unless the id has 1 to 128 characters and no control characters."""
    if not 0 < len(session_id) <= limits.SESSION_ID_CODE_POINTS:
        raise BadIdError("a session id has 1 to 128 characters", "id")
    if any(unicodedata.category(character) == "Cc" for character in session_id):
        raise BadIdError("a session id has no control characters", "id")


def check_title(title: str) -> None:
    """Raise ValueTooLargeError over 1 MiB in UTF-8."""
    if len(title.encode()) > limits.TITLE_BYTES:
        raise ValueTooLargeError(
            "the title is too large", "title", {"limit": str(limits.TITLE_BYTES)}
        )


def is_subagent(title: str) -> bool:
    """Whether the session was run by a subagent (behaviour A3.5)."""
    return title.startswith(SUBAGENT_TITLE_PREFIX)


def get(connection: apsw.Connection, session_id: str) -> Session:
    """Read one session; raises SessionNotFoundError."""
    row = first_row(connection, f"SELECT {_COLUMNS} FROM sessions WHERE id = ?", (session_id,))
    return found(session_id, row)


def found(session_id: str, row: Row | None) -> Session:
    """Make a session of its row; raises SessionNotFoundError when there is none."""
    if row is None:
        raise not_found(session_id)
    return Session(*row)


def not_found(session_id: str) -> SessionNotFoundError:
    """Return the error that names the missing session."""
    return SessionNotFoundError("there is no such session", {"session_id": session_id})


def update(batch: Batch, session_id: str, title: str) -> Session:
    """Set the title, touch ``updated_at``; raises SessionNotFoundError."""
    row = batch.row(
        f"UPDATE sessions SET title = ?, updated_at = ? WHERE id = ? RETURNING {_COLUMNS}",
        (title, batch.now(), session_id),
    )
    batch.touched.append(session_id)
    return found(session_id, row)


def delete(batch: Batch, session_id: str) -> None:
    """Delete a session with its messages and their index entries; raises SessionNotFoundError."""
    get(batch.connection, session_id)
    batch.execute(
        f"""DELETE FROM {MESSAGE_INDEX.name} WHERE rowid IN (
            SELECT id FROM messages WHERE session_id = ?)""",
        (session_id,),
    )
    batch.execute("DELETE FROM messages WHERE session_id = ?", (session_id,))
    batch.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
    batch.deleted.append(session_id)


def list_sessions(
    readers: Readers, scope: Scope, after: SessionCursor | None, cancel: Cancel
) -> Iterator[Placed[Session]]:
    """Yield sessions by ``updated_at`` and ``created_at``, both newest first, then by id.

    A session that changes after it or a later one was yielded is left out, since
    its place is before them then (contract rule 2).
    """
    is_last = False
    while not is_last:
        with readers.reading(cancel) as connection:
            rows, is_last = read_batch(connection, *_query(scope, after), _size)
        for row in rows:
            session = Session(*row[:-1])
            moment = row[-1] if after is None else after.moment
            after = SessionCursor(session.updated_at, session.created_at, session.id, moment)
            yield Placed(session, after)


def _query(scope: Scope, after: SessionCursor | None) -> tuple[str, Row]:
    conditions = ["TRUE" if scope == "all" else f"NOT {IS_SUBAGENT}"]
    bindings: Row = ()
    if after is not None:
        conditions.append(
            """updated_at <= ?1 AND (updated_at < ?1 OR created_at < ?2
                OR created_at = ?2 AND id > ?3)
            AND (updated_at <= ?4 OR updated_at > (SELECT last FROM store_clock))"""
        )
        bindings = (after.updated_at, after.created_at, after.id, after.moment)
    return (
        f"""SELECT {_COLUMNS}, (SELECT last FROM store_clock) FROM sessions WHERE {" AND ".join(conditions)}
            ORDER BY updated_at DESC, created_at DESC, id LIMIT ?""",
        bindings,
    )


def _size(row: Row) -> int:
    return len(row[1])
