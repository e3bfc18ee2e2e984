"""The values of the Store (spec/000, contract "Store").

Times are microseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

import msgspec

GLOBAL_SCOPE = "_global"
COMPACTION_MARKER = "kram:compaction_summary"
SUBAGENT_TITLE_PREFIX = "subagent: "
ROLES = ("user", "assistant", "system", "tool")


class Session(msgspec.Struct, frozen=True):
    """A durable conversation thread."""

    id: str
    title: str
    created_at: int
    updated_at: int


class ToolCall(msgspec.Struct, frozen=True):
    """One requested tool call; ``extra`` holds the JSON text of each other member.

    A further member of ``function`` stands under ``function.<name>`` (contract).
    """

    id: str
    type: str
    name: str
    arguments: str
    extra: tuple[tuple[str, str], ...] = ()


class Draft(msgspec.Struct, frozen=True):
    """A message as the caller gives it, before the Store has numbered it."""

    role: str
    content: str = ""
    provider: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""
    images: tuple[str, ...] = ()


class Message(msgspec.Struct, frozen=True):
    """One stored message; ``truncated`` only in a search window."""

    id: int
    session_id: str
    role: str
    content: str
    provider: str
    tool_calls: tuple[ToolCall, ...]
    tool_call_id: str
    name: str
    images: tuple[str, ...]
    created_at: int
    truncated: bool = False


class MemoryEntry(msgspec.Struct, frozen=True):
    """One compiled fact or note."""

    id: int
    scope: str
    content: str
    pinned: bool
    created_at: int
    updated_at: int


class SearchResult(msgspec.Struct, frozen=True):
    """One match with the messages round it; ``score`` is bm25, lower is better."""

    message: Message
    session_title: str
    is_subagent: bool
    window: tuple[Message, ...]
    score: float
