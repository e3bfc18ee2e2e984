"""The lines of Codex and the messages in them (formats §3.2 to §3.4, §3.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import msgspec

from flue_grpc.agentindex.adapters._injected import is_codex_image_tag, split_codex
from flue_grpc.agentindex.adapters._json_values import (
    ABSENT,
    Stamp,
    is_prose,
    is_string,
    items_of,
    members_of,
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
    result_text,
)
from flue_grpc.agentindex.adapters._records import Count, Records
from flue_grpc.limits import LINE_BLOCKS, LINE_MESSAGES

if TYPE_CHECKING:
    from collections.abc import Callable

    from flue_grpc.agentindex.adapters.base import Context


class Block(msgspec.Struct, gc=False):
    """One part of a message or of reasoning."""

    type: str | None = None
    text: msgspec.Raw = ABSENT
    refusal: msgspec.Raw = ABSENT

    @classmethod
    def of_text(cls, raw: msgspec.Raw) -> Self:
        """Take a bare string for a text block (formats §6 row 14)."""
        return cls(type="text", text=raw)


class Totals(msgspec.Struct, gc=False):
    """Token counts as Codex keeps them: input includes both cache counts."""

    input_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    cache_write_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    output_tokens: Count | None = None


class TokenInfo(msgspec.Struct, gc=False):
    """The ``info`` of a token count."""

    total_token_usage: Totals | None = None
    last_token_usage: Totals | None = None


class Git(msgspec.Struct, gc=False):
    """Where the repository stood."""

    branch: str | None = None


class Goal(msgspec.Struct, gc=False):
    """What a thread is to reach."""

    objective: str | None = None


class Payload(msgspec.Struct, gc=False):
    """The body of a line of any type, in the order in which members usually stand."""

    type: str | None = None
    role: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: msgspec.Raw = ABSENT
    call_id: str | None = None
    input: msgspec.Raw = ABSENT
    output: msgspec.Raw = ABSENT
    content: str | list[Block] | None = None
    summary: str | list[Block] | None = None
    action: msgspec.Raw = ABSENT
    tools: msgspec.Raw = ABSENT
    info: TokenInfo | None = None
    message: msgspec.Raw = ABSENT
    kind: str | None = None
    images: msgspec.Raw = ABSENT
    local_images: msgspec.Raw = ABSENT
    turn_id: str | None = None
    turn_token_usage: Totals | None = None
    cwd: str | None = None
    model: str | None = None
    thread_name: str | None = None
    goal: Goal | None = None
    id: str | None = None
    cli_version: str | None = None
    source: msgspec.Raw = ABSENT
    thread_source: str | None = None
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    history_base: msgspec.Raw = ABSENT
    agent_path: str | None = None
    agent_nickname: str | None = None
    subagent_history_start_ordinal: Count | None = None
    git: Git | None = None


class Line(msgspec.Struct, gc=False):
    """One line; a bare one of 2025 has no payload (formats §3.8)."""

    timestamp: Stamp = None
    ordinal: Count | None = None
    type: str | None = None
    payload: Payload | None = None


LINES: Final = Records(Line)
_BARE_LINES: Final = Records(Payload)

_NATIVE_ROLES: Final = frozenset({"user", "assistant"})
_TEXT_BLOCKS: Final = frozenset({"input_text", "output_text", "text"})
_PICTURES: Final = {"input_image": IMAGE, "input_file": DOCUMENT}


def pieces_of(line: Line, context: Context) -> list[Piece]:
    """Return the messages of a line; of an event only where events stand in for messages."""
    payload = line.payload
    if payload is None:
        return []
    if line.type == "response_item":
        make = _MAKERS.get(payload.type)
        if make is None:
            return []
        pieces = make(payload)
        return pieces if len(pieces) <= LINE_MESSAGES else pieces[:LINE_MESSAGES]
    if line.type == "event_msg":
        return _mirror_pieces(payload) if context.mirror else []
    # Of a compaction its summary, never the history that it repeats.
    is_summary = line.type == "compacted" and is_prose(payload.message)
    return [Piece(SYSTEM_TEXT, payload.message, text_of)] if is_summary else []


def is_native_message(line: Line) -> bool:
    """Say whether a line is a message of the conversation, not a mirror of one (formats §3.3)."""
    item = line.payload
    return (
        line.type == "response_item"
        and item is not None
        and item.type == "message"
        and item.role in _NATIVE_ROLES
    )


def unbare(line: Line, data: bytes | memoryview) -> Line:
    """Return a line of 2025 that is its own payload in today's form (formats §3.8)."""
    if line.payload is not None or not (line.type is None or line.type in _BARE_TYPES):
        return line
    payload = next(_BARE_LINES.all_of(data))
    if line.type is not None:
        return Line(line.timestamp, line.ordinal, "response_item", payload)
    # The first line has no type; others without one, such as states, have no id.
    return Line(line.timestamp, None, "session_meta", payload) if payload.id else line


def is_plain_prompt(event: Payload) -> bool:
    """Say whether an old event is what a person typed (formats §3.7)."""
    return event.kind in {None, "", "plain"}


def has_images(event: Payload) -> bool:
    """Say whether an event brings pictures."""
    return bool(items_of(event.images) or items_of(event.local_images))


def _mirror_pieces(event: Payload) -> list[Piece]:
    if event.type == "agent_message":
        is_said = is_prose(event.message)
        return [Piece(ASSISTANT_TEXT, event.message, text_of)] if is_said else []
    if event.type != "user_message":
        return []
    text = text_of(event.message)
    if not is_plain_prompt(event):
        return [Piece(SYSTEM_TEXT, text)] if text else []
    if text.strip():
        return _user_text_pieces(text)
    return [Piece(USER_TEXT, IMAGE)] if has_images(event) else []


def _message_pieces(item: Payload) -> list[Piece]:
    if item.role == "user":
        return [piece for block in _blocks(item.content) for piece in _user_block_pieces(block)]
    if item.role == "assistant":
        return _prose_pieces(item, ASSISTANT_TEXT)
    if item.role in {"developer", "system"}:
        return _prose_pieces(item, SYSTEM_TEXT)
    return []


def _user_block_pieces(block: Block) -> list[Piece]:
    if block.type in _PICTURES:
        return [Piece(USER_TEXT, _PICTURES[block.type])]
    text = text_of(block.text) if block.type in _TEXT_BLOCKS else ""
    if not text or is_codex_image_tag(text):
        return []
    return _user_text_pieces(text)


def _user_text_pieces(text: str) -> list[Piece]:
    injected, prose = split_codex(text)
    pieces = [Piece(SYSTEM_TEXT, injected)] if injected else []
    if prose:
        pieces.append(Piece(USER_TEXT, prose))
    return pieces


def _prose_pieces(item: Payload, shape: Shape) -> list[Piece]:
    pieces = []
    for block in _blocks(item.content):
        text = block.refusal if block.type == "refusal" else block.text
        if block.type in _PICTURES:
            pieces.append(Piece(shape, _PICTURES[block.type]))
        elif is_prose(text) and (block.type in _TEXT_BLOCKS or block.type == "refusal"):
            pieces.append(Piece(shape, text, text_of))
    return pieces


def _agent_message_pieces(item: Payload) -> list[Piece]:
    return _prose_pieces(item, SYSTEM_TEXT)


def _reasoning_pieces(item: Payload) -> list[Piece]:
    blocks = _blocks(item.summary) + _blocks(item.content)
    thoughts = [block.text for block in blocks if is_prose(block.text)]
    return [Piece(THINKING, thoughts, _joined)] if thoughts else []


def _joined(texts: list[msgspec.Raw]) -> str:
    return "\n".join(map(text_of, texts))


def _blocks(content: str | list[Block] | None) -> list[Block]:
    if isinstance(content, str):
        return [Block(type="text", text=msgspec.Raw(msgspec.json.encode(content)))]
    return content[:LINE_BLOCKS] if content else []


def _call(name: str, body: msgspec.Raw, item: Payload) -> list[Piece]:
    return [Piece(TOOL_CALL, body, text_or_json, name, item.call_id or "")]


def _function_call(item: Payload) -> list[Piece]:
    name = item.name or ""
    return _call(f"{item.namespace}.{name}" if item.namespace else name, item.arguments, item)


def _custom_call(item: Payload) -> list[Piece]:
    return _call(item.name or "", item.input, item)


def _image_call(item: Payload) -> list[Piece]:
    return [Piece(TOOL_CALL, IMAGE, str, "image_generation", item.call_id or "")]


def _output(item: Payload) -> list[Piece]:
    return _result(item.name or "", item.output, item)


def _search_output(item: Payload) -> list[Piece]:
    body = item.output if memoryview(item.output) else item.tools
    return [Piece(TOOL_RESULT, body, text_or_json, "tool_search", item.call_id or "")]


def _result(name: str, output: msgspec.Raw, item: Payload) -> list[Piece]:
    body, is_error = output, False
    # Files of 2025 wrap the text (formats §3.3); strings that hold JSON stay as they are.
    members = None if is_string(output) else members_of(output, ("content", "success"))
    if members is not None:
        body = members.get("content", output)
        is_error = bytes(members.get("success", ABSENT)) == b"false"
    return [Piece(TOOL_RESULT, body, result_text, name, item.call_id or "", is_error)]


_MAKERS: Final[dict[str | None, Callable[[Payload], list[Piece]]]] = {
    "message": _message_pieces,
    "agent_message": _agent_message_pieces,
    "reasoning": _reasoning_pieces,
    "function_call": _function_call,
    "function_call_output": _output,
    "custom_tool_call": _custom_call,
    "custom_tool_call_output": _output,
    "local_shell_call": lambda item: _call("local_shell", item.action, item),
    "web_search_call": lambda item: _call("web_search", item.action, item),
    "tool_search_call": lambda item: _call("tool_search", item.arguments, item),
    "tool_search_output": _search_output,
    "image_generation_call": _image_call,
}

_BARE_TYPES: Final = frozenset(_MAKERS)
