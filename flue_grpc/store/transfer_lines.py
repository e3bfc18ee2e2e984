"""The lines of an exported file: a session, then its messages, one JSON object each."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from flue_grpc.store import times
from flue_grpc.store.tool_calls import decode_tool_calls, encode_tool_calls
from flue_grpc.store.values import Draft, Message, Session

# Told apart by identity: only this very value is left out of a line.
_NO_CALLS: Final = msgspec.Raw(b"")


class SessionLine(
    msgspec.Struct, frozen=True, tag_field="type", tag="session", forbid_unknown_fields=True
):
    """Begins a session; ``messages`` is how many lines of it follow."""

    id: str
    title: str
    created_at: str
    updated_at: str
    messages: Annotated[int, msgspec.Meta(ge=0)]


class MessageLine(
    msgspec.Struct,
    frozen=True,
    tag_field="type",
    tag="message",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """One message; ``tool_calls`` as in the database, ``id`` tells the order only."""

    session_id: str
    role: str
    created_at: str
    content: str = ""
    provider: str = ""
    tool_calls: msgspec.Raw = _NO_CALLS
    tool_call_id: str = ""
    name: str = ""
    images: tuple[str, ...] = ()
    id: int = 0


Line = SessionLine | MessageLine
_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(Line)


def session_line(session: Session, messages: int) -> bytes:
    """Write the line that begins a session."""
    return _line(
        SessionLine(
            session.id,
            session.title,
            times.to_text(session.created_at),
            times.to_text(session.updated_at),
            messages,
        )
    )


def message_line(message: Message) -> bytes:
    """Write the line of a message."""
    calls = encode_tool_calls(message.tool_calls)
    return _line(
        MessageLine(
            message.session_id,
            message.role,
            times.to_text(message.created_at),
            message.content,
            message.provider,
            msgspec.Raw(calls) if calls else _NO_CALLS,
            message.tool_call_id,
            message.name,
            message.images,
            message.id,
        )
    )


def read_line(line: bytes) -> Line:
    """Read a line; raises ValueError that says what is wrong with it."""
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a line of an export: {error}") from error


def session_of(line: SessionLine) -> Session:
    """Make the session; raises ValueError for a time that is none."""
    return Session(
        line.id, line.title, times.from_text(line.created_at), times.from_text(line.updated_at)
    )


def draft_of(line: MessageLine) -> Draft:
    """Make the message without its place and time."""
    calls = bytes(line.tool_calls).decode()
    return Draft(
        line.role,
        line.content,
        line.provider,
        decode_tool_calls(calls),
        line.tool_call_id,
        line.name,
        line.images,
    )


def created_at(line: MessageLine) -> int:
    """Return the message's time; raises ValueError for a time that is none."""
    return times.from_text(line.created_at)


def _line(line: Line) -> bytes:
    return _ENCODER.encode(line) + b"\n"
