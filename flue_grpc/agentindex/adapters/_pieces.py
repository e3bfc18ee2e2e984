"""Pieces: the messages of a record before their texts are made.

Counting needs what a message is, a page needs its text too. Both start from the same
pieces, so a summary counts what the pages show (formats §8.14).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from flue_grpc.agentindex.adapters._json_values import (
    ABSENT,
    DAMAGE,
    compact_json,
    is_string,
    items_of,
    text_of,
)
from flue_grpc.agentindex.values import Kind, Message, Role
from flue_grpc.text.clean import sanitize

if TYPE_CHECKING:
    from collections.abc import Iterable

IMAGE: Final = "[image]"
DOCUMENT: Final = "[document]"
PLACEHOLDERS: Final = frozenset({IMAGE, DOCUMENT})

_BLOCK_TYPE_CODE_POINTS: Final = 64


class Shape(msgspec.Struct, frozen=True):
    """Who speaks and in which form; compared by identity."""

    role: Role
    kind: Kind


USER_TEXT: Final = Shape("user", "text")
ASSISTANT_TEXT: Final = Shape("assistant", "text")
SYSTEM_TEXT: Final = Shape("system", "text")
THINKING: Final = Shape("assistant", "thinking")
TOOL_CALL: Final = Shape("assistant", "tool_call")
TOOL_RESULT: Final = Shape("user", "tool_result")


class Piece(msgspec.Struct, gc=False):
    """One message to be; ``render`` makes its text of ``body``."""

    shape: Shape
    body: Any
    render: Callable[[Any], str] = sanitize
    tool_name: str = ""
    call_id: str = ""
    is_error: bool = False


class Stamped(msgspec.Struct, frozen=True):
    """What the messages of one record have in common."""

    offset: int
    ts: int | None
    model: str
    sidechain: bool = False


def messages_of(pieces: Iterable[Piece], first_index: int, record: Stamped) -> list[Message]:
    """Make the messages; only those of the assistant carry the model."""
    return [_message(piece, index, record) for index, piece in enumerate(pieces, start=first_index)]


def _message(piece: Piece, index: int, record: Stamped) -> Message:
    text = piece.render(piece.body)
    shape = piece.shape
    return Message(
        role=shape.role,
        kind=shape.kind,
        text=text,
        offset=record.offset,
        index=index,
        ts=record.ts,
        model=sanitize(record.model) if shape.role == "assistant" else "",
        tool_name=sanitize(piece.tool_name),
        call_id=sanitize(piece.call_id),
        is_error=piece.is_error,
        sidechain=record.sidechain,
        text_size=len(text) if text.isascii() else len(text.encode()),
    )


class _Part(msgspec.Struct, gc=False):
    type: msgspec.Raw = ABSENT
    text: msgspec.Raw = ABSENT


_decode_part: Final = msgspec.json.Decoder(_Part).decode


def result_text(raw: msgspec.Raw) -> str:
    """Return the text of a tool's output (formats §1.7).

    The texts of a list are joined by newlines, its other blocks become placeholders.
    """
    items = items_of(raw)
    if items is not None:
        return "\n".join(part for part in map(_part_text, items) if part is not None)
    if is_string(raw):
        return text_of(raw)
    text = compact_json(raw)
    return "" if text == "null" else text


def _part_text(raw: msgspec.Raw) -> str | None:
    if is_string(raw):
        return text_of(raw)
    try:
        part = _decode_part(raw)
    except DAMAGE:
        return None
    if is_string(part.text):
        return text_of(part.text)
    return placeholder(text_of(part.type))


def placeholder(block_type: str) -> str | None:
    """Name a block that is no text; None for a text block, whose text is missing."""
    if block_type.endswith("text") or not block_type:
        return None
    name = block_type.removeprefix("input_").removesuffix("_url")
    return sanitize(f"[{name[:_BLOCK_TYPE_CODE_POINTS]}]")
