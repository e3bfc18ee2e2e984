"""Exports sessions as JSONL or markdown, beside a running server, in bounded reads."""

from __future__ import annotations

from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Final, Literal, Protocol

import msgspec

from flue_grpc import limits
from flue_grpc.cancel import NEVER
from flue_grpc.errors import SessionNotFoundError
from flue_grpc.store import messages, sessions, times, transfer_lines
from flue_grpc.store.connections import first_row
from flue_grpc.store.messages import MessageCursor
from flue_grpc.store.values import Session
from flue_grpc.text.harmless import for_line, for_terminal
from flue_grpc.text.markdown import code, fenced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flue_grpc.store.connections import Row
    from flue_grpc.store.readers import Readers
    from flue_grpc.store.values import Message, ToolCall

Format = Literal["jsonl", "markdown"]
_SESSION_IDS: Final = 256  # read at once


class Header(msgspec.Struct, frozen=True):
    """A session as it was when its export began, and which messages it had."""

    session: Session
    messages: int
    last_id: int


class Writer(Protocol):
    """Turns a session and its messages into the bytes of a format."""

    def begin(self, header: Header) -> bytes:
        """Return what stands before the messages."""

    def message(self, message: Message) -> bytes:
        """Return one message."""


class JsonLines:
    """The format that ``import`` reads."""

    def begin(self, header: Header) -> bytes:
        """Return the session's line."""
        return transfer_lines.session_line(header.session, header.messages)

    def message(self, message: Message) -> bytes:
        """Return the message's line."""
        return transfer_lines.message_line(message)


class Markdown:
    """A format for people, on whose terminal nothing of it acts."""

    def begin(self, header: Header) -> bytes:
        """Return the session as a heading and its facts."""
        session = header.session
        title = for_line(" ".join(session.title.split())) or for_line(session.id)
        return (
            f"# {title}\n\n- Session: {code(session.id)}\n"
            f"- Created: {times.to_text(session.created_at)}\n"
            f"- Updated: {times.to_text(session.updated_at)}\n\n"
        ).encode()

    def message(self, message: Message) -> bytes:
        """Return the message under a heading of its own."""
        heading = [message.role, message.name, message.provider, times.to_text(message.created_at)]
        parts = [f"## {' · '.join(filter(None, map(for_line, heading)))}\n"]
        if message.content:
            is_output = message.role == "tool"
            content = message.content
            parts.append(fenced(content) if is_output else f"{for_terminal(content)}\n")
        parts.extend(_call(call) for call in message.tool_calls)
        if message.images:
            parts.append(f"_{len(message.images)} image(s)_\n")
        return ("\n".join(parts) + "\n").encode()


WRITERS: Final[dict[Format, Writer]] = {"jsonl": JsonLines(), "markdown": Markdown()}


class Gone(Protocol):
    """Hears of a session that was left out, since it was deleted while it was read."""

    def __call__(self, session_id: str, /) -> None:
        """Hear its id."""


def export_session(readers: Readers, writer: Writer, session_id: str) -> Iterator[bytes]:
    """Yield the bytes of one session, all or none.

    Raises SessionNotFoundError for an unknown one, and for one that is deleted
    while it is read.
    """
    header = _header(readers, session_id)
    if header is None:
        raise sessions.not_found(session_id)
    yield from _whole(readers, writer, header)


def export_sessions(readers: Readers, writer: Writer, gone: Gone) -> Iterator[bytes]:
    """Yield the bytes of all sessions in the order of their ids, each whole or not at all."""
    for name in _session_ids(readers):
        header = _header(readers, name)
        if header is None:
            continue
        try:
            yield from _whole(readers, writer, header)
        except SessionNotFoundError:
            gone(name)


def _whole(readers: Readers, writer: Writer, header: Header) -> Iterator[bytes]:
    """Yield a session once all of it was read: it may be deleted meanwhile."""
    with SpooledTemporaryFile(limits.EXPORT_SPOOL_BYTES) as file:
        file.write(writer.begin(header))
        file.writelines(_messages(readers, writer, header))
        file.seek(0)
        while part := file.read(limits.EXPORT_PART_BYTES):
            yield part


def _messages(readers: Readers, writer: Writer, header: Header) -> Iterator[bytes]:
    start = MessageCursor(0, header.session.created_at)
    for placed in messages.list_messages(readers, header.session.id, start, "whole", NEVER):
        if placed.item.id > header.last_id:
            break
        yield writer.message(placed.item)


def _session_ids(readers: Readers) -> Iterator[str]:
    # Not in the order of lists: a session that is touched meanwhile must not be missed.
    condition = "TRUE"
    bindings: Row = ()
    while True:
        sql = f"SELECT id FROM sessions WHERE {condition} ORDER BY id LIMIT {_SESSION_IDS}"
        with readers.reading() as connection:
            names = [name for (name,) in connection.execute(sql, bindings)]
        if not names:
            return
        yield from names
        condition, bindings = "id > ?", (names[-1],)


def _header(readers: Readers, session_id: str) -> Header | None:
    with readers.reading() as connection, connection:
        row = first_row(
            connection,
            """SELECT count(*), ifnull(max(id), 0) FROM messages WHERE session_id = ?""",
            (session_id,),
        )
        try:
            session = sessions.get(connection, session_id)
        except SessionNotFoundError:
            return None
    return Header(session, *(row or (0, 0)))


def _call(call: ToolCall) -> str:
    return f"**Tool call** {code(call.name)} {code(call.id)}\n\n{fenced(call.arguments, 'json')}"
