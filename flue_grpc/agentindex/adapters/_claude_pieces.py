"""The lines of Claude Code and the messages in them (formats §2.2 to §2.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import msgspec

from flue_grpc.agentindex.adapters._injected import split_claude
from flue_grpc.agentindex.adapters._json_values import (
    ABSENT,
    Stamp,
    is_prose,
    items_of,
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
    result_text,
)
from flue_grpc.agentindex.adapters._records import Count, Records
from flue_grpc.limits import LINE_BLOCKS, LINE_MESSAGES

if TYPE_CHECKING:
    from collections.abc import Callable

SYNTHETIC: Final = "<synthetic>"


class CacheCreation(msgspec.Struct, gc=False):
    """Cache writes by their time to live."""

    ephemeral_5m_input_tokens: Count | None = None
    ephemeral_1h_input_tokens: Count | None = None


class Usage(msgspec.Struct, gc=False):
    """The tokens of one API response."""

    input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation: CacheCreation | None = None
    output_tokens: Count | None = None


class Block(msgspec.Struct, gc=False):
    """One block of a message's content."""

    type: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = ABSENT
    tool_use_id: str | None = None
    text: msgspec.Raw = ABSENT
    thinking: msgspec.Raw = ABSENT
    content: msgspec.Raw = ABSENT
    is_error: bool | None = None

    @classmethod
    def of_text(cls, raw: msgspec.Raw) -> Self:
        """Take a bare string for a text block (formats §6 row 14)."""
        return cls(type="text", text=raw)


class Body(msgspec.Struct, gc=False):
    """The ``message`` of a line."""

    model: str | None = None
    id: str | None = None
    content: str | list[Block] | None = None
    usage: Usage | None = None


class Attachment(msgspec.Struct, gc=False):
    """What the harness put beside the conversation."""

    type: str | None = None
    prompt: str | list[Block] | None = None
    command_mode: str | None = msgspec.field(default=None, name="commandMode")
    content: msgspec.Raw = ABSENT


class Origin(msgspec.Struct, gc=False):
    """Who wrote a prompt."""

    kind: str | None = None


class Line(msgspec.Struct, rename="camel", gc=False):
    """One line, in the order in which its members usually stand."""

    is_sidechain: bool | None = None
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None
    type: str | None = None
    message: Body | None = None
    request_id: str | None = None
    is_meta: bool | None = None
    uuid: msgspec.Raw = ABSENT
    timestamp: Stamp = None
    is_compact_summary: bool | None = None
    is_visible_in_transcript_only: bool | None = None
    prompt_source: str | None = None
    origin: Origin | None = None
    content: msgspec.Raw = ABSENT
    attachment: Attachment | None = None
    summary: str | None = None
    leaf_uuid: msgspec.Raw = ABSENT
    custom_title: str | None = None
    agent_name: str | None = None
    ai_title: str | None = None


LINES: Final = Records(Line)


def pieces_of(line: Line) -> list[Piece]:
    """Return the messages of a line, at most LINE_MESSAGES."""
    make = _MAKERS.get(line.type)
    if make is None:
        return []
    pieces = make(line)
    return pieces if len(pieces) <= LINE_MESSAGES else pieces[:LINE_MESSAGES]


def _assistant_pieces(line: Line) -> list[Piece]:
    prose = SYSTEM_TEXT if line.is_compact_summary else ASSISTANT_TEXT
    content = line.message.content if line.message else text_of(line.content)
    if not isinstance(content, list):
        return [Piece(prose, content)] if content else []
    pieces = []
    for block in content[:LINE_BLOCKS]:
        kind = block.type
        if kind == "text":
            if is_prose(block.text):
                pieces.append(Piece(prose, block.text, text_of))
        elif kind == "thinking":
            if is_prose(block.thinking):
                pieces.append(Piece(THINKING, block.thinking, text_of))
        elif kind == "tool_use" or kind in _OTHER_CALLS:
            name, call_id = block.name or "", block.id or ""
            pieces.append(Piece(TOOL_CALL, block.input, text_or_json, name, call_id))
        elif kind in _PICTURES:
            pieces.append(Piece(prose, _PICTURES[kind]))
        elif kind and kind.endswith("tool_result"):
            pieces.append(_result(block))
    return pieces


def _user_pieces(line: Line) -> list[Piece]:
    content = line.message.content if line.message else text_of(line.content)
    if not isinstance(content, list):
        return _prose_pieces(line, content or "")
    pieces = []
    for block in content[:LINE_BLOCKS]:
        kind = block.type
        if kind == "tool_result":
            pieces.append(_result(block))
        elif kind == "text":
            pieces += _prose_pieces(line, text_of(block.text))
        elif kind in _PICTURES:
            pieces.append(Piece(SYSTEM_TEXT if _is_injected(line) else USER_TEXT, _PICTURES[kind]))
    return pieces


def _system_pieces(line: Line) -> list[Piece]:
    return [Piece(SYSTEM_TEXT, line.content, text_of)] if is_prose(line.content) else []


def _attachment_pieces(line: Line) -> list[Piece]:
    attachment = line.attachment or Attachment()
    kind = attachment.type or ""
    if kind == "queued_command":
        is_injected = attachment.command_mode == "task-notification" or _is_injected(line)
        typed = Line(type="user", is_meta=is_injected, message=Body(content=attachment.prompt))
        return [piece for piece in _user_pieces(typed) if piece.shape is not TOOL_RESULT]
    return _hook_pieces(attachment.content) if kind.startswith("hook_") else []


def _hook_pieces(content: msgspec.Raw) -> list[Piece]:
    if is_prose(content):
        return [Piece(SYSTEM_TEXT, content, text_of)]
    parts = [text_of(item) for item in items_of(content) or () if is_prose(item)]
    return [Piece(SYSTEM_TEXT, "\n".join(parts))] if parts else []


def _is_injected(line: Line) -> bool:
    """Say whether no text of the line was typed (rules 1 to 3)."""
    return bool(
        line.is_meta
        or line.is_compact_summary
        or line.is_visible_in_transcript_only
        or line.prompt_source == "system"
        or (line.origin and line.origin.kind and line.origin.kind != "human")
    )


def _prose_pieces(line: Line, text: str) -> list[Piece]:
    if not text:
        return []
    if _is_injected(line):
        return [Piece(SYSTEM_TEXT, text)]
    injected, prose = split_claude(text)
    pieces = [Piece(SYSTEM_TEXT, injected)] if injected else []
    if prose:
        pieces.append(Piece(USER_TEXT, prose))
    return pieces


def _result(block: Block) -> Piece:
    call_id = block.tool_use_id or ""
    return Piece(TOOL_RESULT, block.content, result_text, "", call_id, block.is_error is True)


_MAKERS: Final[dict[str | None, Callable[[Line], list[Piece]]]] = {
    "assistant": _assistant_pieces,
    "user": _user_pieces,
    "system": _system_pieces,
    "attachment": _attachment_pieces,
}
_OTHER_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})
_PICTURES: Final = {"image": IMAGE, "document": DOCUMENT}
