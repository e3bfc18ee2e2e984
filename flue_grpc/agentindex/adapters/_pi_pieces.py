"""The lines of Pi and the messages in them (formats §4.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import msgspec

from flue_grpc.agentindex.adapters._injected import split_pi
from flue_grpc.agentindex.adapters._json_values import (
    ABSENT,
    Stamp,
    is_prose,
    is_string,
    text_of,
    text_or_json,
)
from flue_grpc.agentindex.adapters._pieces import (
    ASSISTANT_TEXT,
    DOCUMENT,
    IMAGE,
    SYSTEM_TEXT,
    THINKING,
    TOOL_CALL,
    TOOL_RESULT,
    USER_TEXT,
    Piece,
    Shape,
    placeholder,
)
from flue_grpc.agentindex.adapters._records import Count, Records
from flue_grpc.limits import LINE_BLOCKS, LINE_MESSAGES
from flue_grpc.text.clean import sanitize

if TYPE_CHECKING:
    from collections.abc import Callable


class Cost(msgspec.Struct, gc=False):
    """What a request cost, in dollars."""

    total: float | None = None


class CacheUsage(msgspec.Struct, gc=False):
    """Cache counts as old and foreign builds spell them."""

    read: Count | None = None
    write: Count | None = None


class Usage(msgspec.Struct, rename="camel", gc=False):
    """The tokens of one request, in disjoint buckets."""

    input: Count | None = None
    output: Count | None = None
    cache_read: Count | None = None
    cache_write: Count | None = None
    total_tokens: Count | None = None
    cost: Cost | None = None
    cache: CacheUsage | None = None
    cache_creation: Count | None = None


class Block(msgspec.Struct, gc=False):
    """One block of a message's content."""

    type: str | None = None
    text: msgspec.Raw = ABSENT
    thinking: msgspec.Raw = ABSENT
    id: str | None = None
    name: str | None = None
    arguments: msgspec.Raw = ABSENT
    redacted: bool | None = None

    @classmethod
    def of_text(cls, raw: msgspec.Raw) -> Self:
        """Take a bare string for a text block (formats §6 row 14)."""
        return cls(type="text", text=raw)


Content = str | list[Block] | None


class Body(msgspec.Struct, rename="camel", gc=False):
    """The ``message`` of a line."""

    role: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    content: Content = None
    model: str | None = None
    usage: Usage | None = None
    stop_reason: str | None = None
    is_error: bool | None = None
    timestamp: Stamp = None
    error_message: str | None = None
    command: str | None = None
    output: msgspec.Raw = ABSENT
    summary: str | None = None


class Line(msgspec.Struct, rename="camel", gc=False):
    """One line; the header has the session's own ``id``, ``cwd`` and model."""

    type: str | None = None
    id: str | None = None
    timestamp: Stamp = None
    message: Body | None = None
    content: Content = None
    summary: str | None = None
    usage: Usage | None = None
    cwd: str | None = None
    model_id: str | None = None
    name: str | None = None


LINES: Final = Records(Line)

_PICTURES: Final = {"image": IMAGE, "document": DOCUMENT}
_FAILURES: Final = frozenset({"error", "aborted"})


def pieces_of(line: Line) -> list[Piece]:
    """Return the messages of a line, at most LINE_MESSAGES."""
    if line.type == "message":
        body = line.message
        make = _MAKERS.get(body.role or "") if body else None
        pieces = make(body) if make and body else []
        return pieces if len(pieces) <= LINE_MESSAGES else pieces[:LINE_MESSAGES]
    if line.type == "custom_message":
        return _prose_pieces(line.content, SYSTEM_TEXT)[:LINE_MESSAGES]
    if line.type in {"compaction", "branch_summary"}:
        return [Piece(SYSTEM_TEXT, line.summary)] if line.summary else []
    return []


def _user_pieces(body: Body) -> list[Piece]:
    pieces = []
    for piece in _prose_pieces(body.content, USER_TEXT):
        skill, prose = split_pi(piece.render(piece.body))
        if skill:
            pieces.append(Piece(SYSTEM_TEXT, skill))
        if prose:
            pieces.append(Piece(USER_TEXT, prose))
    return pieces


def _assistant_pieces(body: Body) -> list[Piece]:
    pieces = []
    for block in _blocks(body.content):
        kind = block.type
        if kind == "text":
            if is_prose(block.text):
                pieces.append(Piece(ASSISTANT_TEXT, block.text, text_of))
        elif kind == "thinking":
            if is_prose(block.thinking) and not block.redacted:
                pieces.append(Piece(THINKING, block.thinking, text_of))
        elif kind == "toolCall":
            call = (text_or_json, block.name or "", block.id or "")
            pieces.append(Piece(TOOL_CALL, block.arguments, *call))
        elif kind in _PICTURES:
            pieces.append(Piece(ASSISTANT_TEXT, _PICTURES[kind]))
    if not pieces and body.error_message and body.stop_reason in _FAILURES:
        pieces.append(Piece(SYSTEM_TEXT, body.error_message))
    return pieces


def _result_pieces(body: Body) -> list[Piece]:
    call = (body.tool_name or "", body.tool_call_id or "", body.is_error is True)
    return [Piece(TOOL_RESULT, body.content, _content_text, *call)]


def _shell_pieces(body: Body) -> list[Piece]:
    return [Piece(SYSTEM_TEXT, body, _shell_text)]


def _injected_pieces(body: Body) -> list[Piece]:
    return _prose_pieces(body.content, SYSTEM_TEXT)


def _summary_pieces(body: Body) -> list[Piece]:
    return [Piece(SYSTEM_TEXT, body.summary)] if body.summary else []


def _prose_pieces(content: Content, shape: Shape) -> list[Piece]:
    pieces = []
    for block in _blocks(content):
        if block.type == "text" and is_prose(block.text):
            pieces.append(Piece(shape, block.text, text_of))
        elif block.type in _PICTURES:
            pieces.append(Piece(shape, _PICTURES[block.type]))
    return pieces


def _blocks(content: Content) -> list[Block]:
    if isinstance(content, str):
        return [Block(type="text", text=msgspec.Raw(msgspec.json.encode(content)))]
    return content[:LINE_BLOCKS] if content else []


def _content_text(content: Content) -> str:
    """Return the text of a tool's output (formats §1.7)."""
    if isinstance(content, str):
        return sanitize(content)
    texts = (
        text_of(block.text) if is_string(block.text) else placeholder(block.type or "")
        for block in _blocks(content)
    )
    return "\n".join(text for text in texts if text is not None)


def _shell_text(body: Body) -> str:
    command, output = sanitize(body.command or ""), text_of(body.output)
    return f"$ {command}\n{output}" if output else f"$ {command}"


_MAKERS: Final[dict[str, Callable[[Body], list[Piece]]]] = {
    "user": _user_pieces,
    "assistant": _assistant_pieces,
    "toolResult": _result_pieces,
    "bashExecution": _shell_pieces,
    "custom": _injected_pieces,
    "hookMessage": _injected_pieces,
    "branchSummary": _summary_pieces,
    "compactionSummary": _summary_pieces,
}
