"""The values of the Store (spec/000, contract "Store").

Times are microseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from flue_grpc import limits

GLOBAL_SCOPE = "_global"
COMPACTION_MARKER = "kram:compaction_summary"
SUBAGENT_TITLE_PREFIX = "subagent: "
ROLES = ("user", "assistant", "system", "tool")
MIN_TIME = -62_135_596_800_000_000  # 0001-01-01, the first Timestamp
MAX_TIME = 253_402_300_799_999_999  # the last microsecond of 9999, the last Timestamp

Scope = Literal["user", "all"]  # "user" leaves out sessions run by subagents
Images = Literal["whole", "omitted"]  # "omitted": an empty string for each
Durability = Literal["full", "normal"]  # "normal" may lose the last commits in a power cut
State = Literal["serving", "read_only", "stopped", "corrupt"]


class StoreSettings(msgspec.Struct, frozen=True):
    """How to open the database; ``vfs`` names the SQLite VFS, None is the default one."""

    durability: Durability = "full"
    vfs: str | None = None


DEFAULT_SETTINGS: Final = StoreSettings()


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


class Message(msgspec.Struct, frozen=True, gc=False):
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


class EntryDraft(msgspec.Struct, frozen=True):
    """A memory entry as the caller gives it."""

    scope: str
    content: str
    pinned: bool = False


class MemoryChange(msgspec.Struct, frozen=True):
    """What to set of an entry; None leaves it as it is."""

    content: str | None = None
    pinned: bool | None = None


class SearchResult(msgspec.Struct, frozen=True):
    """One match with the messages round it; ``score`` is bm25, lower is better."""

    message: Message
    session_title: str
    is_subagent: bool
    window: tuple[Message, ...]
    score: float


class MessageQuery(msgspec.Struct, frozen=True):
    """What SearchMessages looks for.

    ``session_id`` empty is every session; ``window`` counts the messages on
    each side of a match, from 0 to limits.WINDOW_MAX.
    """

    query: str
    scope: Scope = "user"
    session_id: str = ""
    window: int = limits.WINDOW_DEFAULT
    images: Images = "omitted"


class MemoryQuery(msgspec.Struct, frozen=True):
    """What SearchMemory looks for, and in which scopes."""

    query: str
    scopes: tuple[str, ...]
