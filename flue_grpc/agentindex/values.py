"""The values of the transcript index (spec/002, contract "AgentIndex").

Times are microseconds since 1970-01-01 UTC, None when not recorded. Offsets and
sizes are bytes. Texts are valid UTF-8 without NUL: damage is U+FFFD already.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Role = Literal["user", "assistant", "system"]
Kind = Literal["text", "thinking", "tool_call", "tool_result"]
Direction = Literal["forward", "backward"]


class TokenUsage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Tokens in four disjoint buckets."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        """Add bucket by bucket."""
        return TokenUsage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )


class Resume(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The command that picks a session up, for a person to run in ``dir``."""

    command: str
    args: tuple[str, ...]
    dir: str


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message; every message of a line has the line's offset.

    ``index`` counts within the line from 0, ``text_size`` is the UTF-8 size of
    the whole text, ``truncated`` says that ``text`` is only its beginning.
    """

    role: Role
    kind: Kind
    text: str
    offset: int
    index: int
    ts: int | None = None
    model: str = ""
    tool_name: str = ""
    call_id: str = ""
    is_error: bool = False
    sidechain: bool = False
    truncated: bool = False
    text_size: int = 0


class Summary(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One transcript as a list shows it (behaviour B5)."""

    id: str
    tool: str
    cwd: str
    title: str
    first_prompt: str
    started_at: int | None
    ended_at: int | None
    message_count: int
    tool_call_count: int
    models: tuple[str, ...]
    tokens: TokenUsage
    cost_usd: float | None
    file_size: int
    resume: Resume | None
    prompt_count: int
    parent_id: str
    git_branch: str
    tool_version: str
    subagent_tokens: TokenUsage
    updated_at: int
    revision: str
    is_subagent: bool

    @property
    def is_listed(self) -> bool:
        """At least one message that is not system text (formats §8.6)."""
        return self.message_count > 0


class Page(msgspec.Struct, frozen=True):
    """A window of messages and where it sits in the file (behaviour B6)."""

    messages: tuple[Message, ...]
    start: int
    next: int
    eof: bool
    file_size: int
    revision: str


class Hit(msgspec.Struct, frozen=True):
    """One search match; ``ranges`` are half-open UTF-8 byte ranges of ``snippet``.

    ``text_offset`` is the byte offset of the match in the whole text.
    """

    tool: str
    id: str
    cwd: str
    title: str
    ts: int | None
    role: Role
    kind: Kind
    snippet: str
    offset: int
    index: int
    text_offset: int
    ranges: tuple[tuple[int, int], ...]
    score: float = 0.0
