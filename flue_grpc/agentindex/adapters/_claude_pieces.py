"""The lines of Claude Code and the messages in them (formats §2.2 to §2.5)."""

from __future__ import annotations

from typing import Final, Self

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

SYNTHETIC: Final = "<synthetic>"


class CacheCreation(msgspec.Struct):
    """Cache writes by their time to live."""

    ephemeral_5m_input_tokens: Count | None = None
    ephemeral_1h_input_tokens: Count | None = None


class Usage(msgspec.Struct):
    """The tokens of one API response."""

    input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation: CacheCreation | None = None
    output_tokens: Count | None = None


class Block(msgspec.Struct):
    """One block of a message's content."""

    type: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = ABSENT
    tool_use_id: str | None = None
    text: str | None = None
    thinking: str | None = None
    content: msgspec.Raw = ABSENT
    is_error: bool | None = None

    @classmethod
    def of_text(cls, raw: msgspec.Raw) -> Self:
        """Take a bare string for a text block (formats §6 row 14)."""
        return cls(type="text", text=text_of(raw))


class Body(msgspec.Struct):
    """The ``message`` of a line."""

    model: str | None = None
    id: str | None = None
    content: str | list[Block] | None = None
    usage: Usage | None = None


class Attachment(msgspec.Struct):
    """What the harness put beside the conversation."""

    type: str | None = None
    prompt: str | list[Block] | None = None
    command_mode: str | None = msgspec.field(default=None, name="commandMode")
    content: msgspec.Raw = ABSENT


class Origin(msgspec.Struct):
    """Who wrote a prompt."""

    kind: str | None = None


class Line(msgspec.Struct, rename="camel"):
    """One line, in the order in which its members usually stand."""

    is_sidechain: bool | None = None
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None
    type: str | None = None
    message: Body | None = None
    request_id: str | None = None
    is_meta: bool | None = None
    uuid: str | None = None
    timestamp: Stamp = None
    is_compact_summary: bool | None = None
    is_visible_in_transcript_only: bool | None = None
    prompt_source: str | None = None
    origin: Origin | None = None
    content: msgspec.Raw = ABSENT
    attachment: Attachment | None = None
    summary: str | None = None
    leaf_uuid: str | None = None
    custom_title: str | None = None
    agent_name: str | None = None
    ai_title: str | None = None


LINES: Final = Records(Line)


def pieces_of(line: Line) -> list[Piece]:
    """Return the messages of a line, none for a line that holds none."""
    if line.type == "assistant":
        return _assistant_pieces(line)
    if line.type == "user":
        return _user_pieces(line)
    if line.type == "system":
        return [Piece(SYSTEM_TEXT, line.content, text_of)] if is_prose(line.content) else []
    if line.type == "attachment" and line.attachment:
        return _attachment_pieces(line, line.attachment)
    return []


def _assistant_pieces(line: Line) -> list[Piece]:
    prose = SYSTEM_TEXT if line.is_compact_summary else ASSISTANT_TEXT
    content = _content(line)
    if isinstance(content, str):
        return [Piece(prose, content)] if content else []
    pieces = []
    for block in content:
        kind = block.type
        if kind == "text":
            if block.text:
                pieces.append(Piece(prose, block.text))
        elif kind == "thinking":
            if block.thinking:
                pieces.append(Piece(THINKING, block.thinking))
        elif kind in _TOOL_CALLS:
            pieces.append(_call(block))
        elif kind and kind.endswith("tool_result"):
            pieces.append(_result(block))
        elif kind in _PICTURES:
            pieces.append(Piece(prose, _PICTURES[kind]))
    return pieces


def _user_pieces(line: Line) -> list[Piece]:
    is_injected = _is_injected(line)
    content = _content(line)
    if isinstance(content, str):
        return _prose_pieces(content, is_injected=is_injected)
    pieces = []
    for block in content:
        kind = block.type
        if kind == "tool_result":
            pieces.append(_result(block))
        elif kind == "text":
            pieces += _prose_pieces(block.text or "", is_injected=is_injected)
        elif kind in _PICTURES:
            pieces.append(Piece(SYSTEM_TEXT if is_injected else USER_TEXT, _PICTURES[kind]))
    return pieces


def _attachment_pieces(line: Line, attachment: Attachment) -> list[Piece]:
    kind = attachment.type or ""
    if kind == "queued_command":
        is_injected = attachment.command_mode == "task-notification" or _is_injected(line)
        return _queued_pieces(attachment.prompt, is_injected=is_injected)
    if kind.startswith("hook_"):
        return _hook_pieces(attachment.content)
    return []


def _queued_pieces(prompt: str | list[Block] | None, *, is_injected: bool) -> list[Piece]:
    line = Line(type="user", is_meta=is_injected, message=Body(content=prompt))
    return [piece for piece in _user_pieces(line) if piece.shape is not TOOL_RESULT]


def _hook_pieces(content: msgspec.Raw) -> list[Piece]:
    if is_prose(content):
        return [Piece(SYSTEM_TEXT, content, text_of)]
    parts = [text_of(item) for item in items_of(content) or () if is_prose(item)]
    return [Piece(SYSTEM_TEXT, "\n".join(parts))] if parts else []


def _content(line: Line) -> str | list[Block]:
    """Return the content of a message, or of a line that has no message (rule 10)."""
    if line.message is None:
        return text_of(line.content)
    return line.message.content or ""


def _is_injected(line: Line) -> bool:
    """Say whether no text of the line was typed (rules 1 to 3)."""
    return bool(
        line.is_meta
        or line.is_compact_summary
        or line.is_visible_in_transcript_only
        or line.prompt_source == "system"
        or (line.origin and line.origin.kind and line.origin.kind != "human")
    )


def _prose_pieces(text: str, *, is_injected: bool) -> list[Piece]:
    if not text:
        return []
    if is_injected:
        return [Piece(SYSTEM_TEXT, text)]
    injected, prose = split_claude(text)
    pieces = [Piece(SYSTEM_TEXT, injected)] if injected else []
    if prose:
        pieces.append(Piece(USER_TEXT, prose))
    return pieces


def _call(block: Block) -> Piece:
    return Piece(TOOL_CALL, block.input, text_or_json, block.name or "", block.id or "")


def _result(block: Block) -> Piece:
    call_id = block.tool_use_id or ""
    return Piece(TOOL_RESULT, block.content, result_text, "", call_id, block.is_error is True)


_TOOL_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_PICTURES: Final = {"image": IMAGE, "document": DOCUMENT}
