"""Messages of a session: the statements of their writes and reads (behaviour A2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc import limits
from flue_grpc.errors import (
    BadBatchError,
    BadRoleError,
    MessageNotFoundError,
    SessionNotFoundError,
    ValueTooLargeError,
)
from flue_grpc.listing import Cursor, Placed
from flue_grpc.store import message_rows, message_size, sessions
from flue_grpc.store.connections import first_row
from flue_grpc.store.paging import read_batch
from flue_grpc.store.text_index import MESSAGE_INDEX
from flue_grpc.store.tool_calls import normal
from flue_grpc.store.values import COMPACTION_MARKER, ROLES, Draft, Images, Message
from flue_grpc.transactions import transaction

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw

    from flue_grpc.cancel import Cancel
    from flue_grpc.store.batch import Batch
    from flue_grpc.store.readers import Readers

_SEARCHABLE_ROLES: Final = ("user", "assistant")


class MessageCursor(Cursor, frozen=True, array_like=True):
    """The place after the message with this id.

    ``created_at`` is its session's, which tells it from a later one of the same id;
    None when that is not known.
    """

    id: int
    created_at: int | None = None


FROM_START: Final = MessageCursor(0)


class NewMessages(msgspec.Struct, frozen=True):
    """The body of AppendMessage and AppendMessages."""

    session_id: str
    drafts: tuple[Draft, ...]

    def make(self, batch: Batch) -> tuple[Message, ...]:
        """Append all and touch the session; raises SessionNotFoundError."""
        times = [batch.now() for _ in self.drafts]
        touch = "UPDATE sessions SET updated_at = ? WHERE id = ?"
        if batch.change(touch, (times[-1], self.session_id)) == 0:
            raise sessions.not_found(self.session_id)
        batch.touched.append(self.session_id)
        return tuple(
            _append(batch, self.session_id, created_at, draft)
            for created_at, draft in zip(times, self.drafts, strict=True)
        )

    def name(self, made: tuple[Message, ...]) -> str:
        """Return the ids of the first and last: one write gets ids without a gap."""
        return f"{made[0].id} {made[-1].id}"

    def find(self, batch: Batch, name: str) -> tuple[Message, ...]:
        """Return the messages as they are now."""
        first, last = map(int, name.split())
        rows = batch.connection.execute(
            f"""SELECT {message_rows.COLUMNS["whole"]} FROM messages
                WHERE session_id = ? AND id BETWEEN ? AND ? ORDER BY id""",
            (self.session_id, first, last),
        ).fetchall()
        if len(rows) != last - first + 1:
            sessions.get(batch.connection, self.session_id)
            raise MessageNotFoundError("the message was deleted with its session")
        return tuple(map(message_rows.message, rows))


def checked(draft: Draft) -> Draft:
    """Return the draft as it will be read back.

    Raises BadRoleError for a role outside the four, and as ``check_size``.
    """
    if draft.role not in ROLES:
        raise BadRoleError("the role is none of user, assistant, system, tool", "role")
    check_size(draft)
    return msgspec.structs.replace(draft, tool_calls=tuple(map(normal, draft.tool_calls)))


def check_size(draft: Draft) -> None:
    """Raise ValueTooLargeError over 32 MiB serialised, and over 1,000,000 tool calls."""
    if len(draft.tool_calls) > limits.TOOL_CALLS:
        raise ValueTooLargeError(
            "the message has too many tool calls", "message", {"limit": str(limits.TOOL_CALLS)}
        )
    if message_size.draft_size(draft) + message_size.ADDED > limits.MESSAGE_BYTES:
        raise ValueTooLargeError(
            "the message is too large", "message", {"limit": str(limits.MESSAGE_BYTES)}
        )


def check_count(count: int) -> None:
    """Raise BadBatchError unless there are 1 to 1,000 messages."""
    if not 0 < count <= limits.BATCH_MESSAGES:
        raise BadBatchError(
            "a batch has 1 to 1,000 messages", "messages", {"limit": str(limits.BATCH_MESSAGES)}
        )


def is_searchable(role: str, content: str, name: str) -> bool:
    """Whether a message is indexed (behaviour A3.1); the column ``searchable`` says the same."""
    return role in _SEARCHABLE_ROLES and content != "" and name != COMPACTION_MARKER


def list_messages(
    readers: Readers,
    session_id: str,
    after: MessageCursor,
    images: Images,
    cancel: Cancel,
) -> Iterator[Placed[Message]]:
    """Yield the messages of a session after a place, oldest first, each exactly once.

    Raises SessionNotFoundError, also when the session is deleted meanwhile, or was
    since the place was given, even if there is another one of its id.
    """
    sql = f"""SELECT {message_rows.COLUMNS[images]} FROM messages
        WHERE session_id = ? AND id > ? ORDER BY id LIMIT ?"""
    is_last = False
    while not is_last:
        with readers.reading(cancel) as connection, transaction(connection):
            after = located(connection, session_id, after)
            rows, is_last = read_batch(
                connection, sql, (session_id, after.id), message_rows.row_size
            )
        for row in rows:
            after = MessageCursor(row[0], after.created_at)
            yield Placed(message_rows.message(row), after)


def located(connection: apsw.Connection, session_id: str, place: MessageCursor) -> MessageCursor:
    """Return the place with its session's ``created_at``.

    Raises SessionNotFoundError when that session is not there any more.
    """
    row = first_row(connection, "SELECT created_at FROM sessions WHERE id = ?", (session_id,))
    if place.created_at is not None and (row is None or row[0] != place.created_at):
        raise SessionNotFoundError("the session was deleted", {"session_id": session_id})
    if row is None:
        raise sessions.not_found(session_id)
    return MessageCursor(place.id, row[0])


def _append(batch: Batch, session_id: str, created_at: int, draft: Draft) -> Message:
    row = message_rows.insert_row(session_id, created_at, draft)
    number = batch.insert(message_rows.INSERT, row)
    if is_searchable(draft.role, draft.content, draft.name):
        MESSAGE_INDEX.add(batch.connection, number, draft.content)
    return message_rows.stored(number, session_id, created_at, draft)
