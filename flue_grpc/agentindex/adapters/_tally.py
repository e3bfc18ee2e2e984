"""What the summaries of all tools count, and how they are put together (behaviour B5)."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.agentindex.adapters._json_values import MAX_COUNT
from flue_grpc.agentindex.adapters._pieces import (
    PLACEHOLDERS,
    SYSTEM_TEXT,
    TOOL_CALL,
    USER_TEXT,
    Piece,
)
from flue_grpc.agentindex.adapters.base import FileFacts, LineUsage
from flue_grpc.agentindex.values import Resume, Summary, TokenUsage
from flue_grpc.limits import FIRST_PROMPT_BYTES, LABEL_BYTES, MODELS, TITLE_CODE_POINTS
from flue_grpc.text.clean import cut_bytes, first_line, sanitize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

NO_TOKENS: Final = TokenUsage()
NOTHING: Final[tuple[LineUsage, ...]] = ()

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_PATH_BYTES: Final = 4096  # PATH_MAX: no longer directory can be entered


class Tally(msgspec.Struct):
    """Counts over the records taken in so far."""

    message_count: int = 0
    tool_call_count: int = 0
    prompt_count: int = 0
    started_at: int | None = None
    ended_at: int | None = None
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    models: list[str] = []

    def take(  # noqa: PLR0913  (a value for them would cost more than the counting)
        self,
        pieces: Iterable[Piece],
        ts: int | None,
        model: str = "",
        tokens: TokenUsage = NO_TOKENS,
        cost_usd: float | None = None,
        *,
        sidechain: bool = False,
        inherited: bool = False,
    ) -> LineUsage | None:
        """Take in the messages and tokens of a record; return what it adds, None for nothing.

        What is ``inherited`` does not widen the session's span (behaviour B5).
        """
        count = 0
        for piece in pieces:
            shape = piece.shape
            if shape is SYSTEM_TEXT:
                continue
            count += 1
            if shape is TOOL_CALL:
                self.tool_call_count += 1
            elif shape is USER_TEXT and not sidechain:
                self.prompt_count += 1
        if tokens is not NO_TOKENS:
            tokens = self.add(tokens)
        elif not count and cost_usd is None:
            return None
        if count:
            self.message_count += count
            if ts is not None and not inherited:
                self.stretch(ts)
        return LineUsage(ts, model, tokens, cost_usd, count)

    def stretch(self, ts: int) -> None:
        """Let the session span ``ts``, the time of a message that counts."""
        if self.ended_at is None or ts > self.ended_at:
            self.ended_at = ts
        if self.started_at is None or ts < self.started_at:
            self.started_at = ts

    def add(self, tokens: TokenUsage) -> TokenUsage:
        """Add tokens; return what was added: less only where a sum would leave 0 to 2^63-1."""
        total_input, output = self.input + tokens.input, self.output + tokens.output
        read, write = self.cache_read + tokens.cache_read, self.cache_write + tokens.cache_write
        if not 0 <= (total_input | output | read | write) <= MAX_COUNT:
            return self._add_within_range(tokens)
        self.input, self.output, self.cache_read, self.cache_write = (
            total_input,
            output,
            read,
            write,
        )
        return tokens

    def add_model(self, model: str) -> None:
        """Note a model that was used; the first ones only, in the order of their use."""
        if model not in self.models and len(self.models) < MODELS:
            self.models.append(model)

    @property
    def tokens(self) -> TokenUsage:
        """The sum of all that was added."""
        return TokenUsage(self.input, self.output, self.cache_read, self.cache_write)

    def _add_within_range(self, tokens: TokenUsage) -> TokenUsage:
        before = self.tokens
        self.input = _within_range(self.input + tokens.input)
        self.output = _within_range(self.output + tokens.output)
        self.cache_read = _within_range(self.cache_read + tokens.cache_read)
        self.cache_write = _within_range(self.cache_write + tokens.cache_write)
        return minus(self.tokens, before)


class Traits(msgspec.Struct, frozen=True):
    """What a summary says besides its counts; ``title`` is empty for one from the prompt."""

    id: str
    cwd: str
    title: str
    first_prompt: str
    resume: tuple[str, ...]
    parent_id: str = ""
    is_subagent: bool = False
    git_branch: str = ""
    tool_version: str = ""
    cost_usd: float | None = None


def summary_of(tool: str, traits: Traits, tally: Tally, file: FileFacts) -> Summary:
    """Put a summary together. A subagent cannot be resumed (formats §8.5)."""
    can_resume = traits.cwd and not traits.is_subagent
    command, *args = traits.resume
    return Summary(
        id=traits.id,
        tool=tool,
        cwd=traits.cwd,
        title=traits.title or title_of(traits.first_prompt),
        first_prompt=traits.first_prompt,
        started_at=tally.started_at,
        ended_at=tally.ended_at,
        message_count=tally.message_count,
        tool_call_count=tally.tool_call_count,
        models=tuple(tally.models),
        tokens=tally.tokens,
        cost_usd=traits.cost_usd,
        file_size=file.size,
        resume=Resume(command, tuple(args), traits.cwd) if can_resume else None,
        prompt_count=tally.prompt_count,
        parent_id=traits.parent_id,
        git_branch=traits.git_branch,
        tool_version=traits.tool_version,
        subagent_tokens=NO_TOKENS,
        updated_at=file.mtime,
        revision=file.revision,
        is_subagent=traits.is_subagent,
    )


def merged(one: Tally, other: Tally) -> Tally:
    """Return the counts and the span of both, with the tokens and models of ``one``."""
    tally = msgspec.structs.replace(one)
    tally.message_count += other.message_count
    tally.tool_call_count += other.tool_call_count
    tally.prompt_count += other.prompt_count
    if other.started_at is not None and other.ended_at is not None:
        tally.stretch(other.started_at)
        tally.stretch(other.ended_at)
    return tally


def minus(one: TokenUsage, other: TokenUsage) -> TokenUsage:
    """Subtract bucket by bucket."""
    return TokenUsage(
        one.input - other.input,
        one.output - other.output,
        one.cache_read - other.cache_read,
        one.cache_write - other.cache_write,
    )


def maximum(one: TokenUsage, other: TokenUsage) -> TokenUsage:
    """Take the larger number of each bucket."""
    return TokenUsage(
        max(one.input, other.input),
        max(one.output, other.output),
        max(one.cache_read, other.cache_read),
        max(one.cache_write, other.cache_write),
    )


def first_prose(pieces: Sequence[Piece], request: Callable[[str], str] = str) -> str:
    """Return the prompt among the pieces of one record, as a summary keeps it.

    ``request`` finds it in a text. A picture's placeholder counts only where no text
    stands beside it (formats §8.13).
    """
    prompt = ""
    for piece in pieces:
        if piece.shape is USER_TEXT:
            text = prompt_of(request(piece.render(piece.body)))
            if text and text not in PLACEHOLDERS:
                return text
            prompt = prompt or text
    return prompt


def prompt_of(text: str) -> str:
    """Cut a prompt to what a summary keeps of it (formats §8.12)."""
    return cut_bytes(sanitize(text).strip(), FIRST_PROMPT_BYTES)


def title_of(text: str) -> str:
    """Return the first line that shows something (formats §8.12)."""
    return first_line(sanitize(text), TITLE_CODE_POINTS)


def label_of(text: str) -> str:
    """Cut a short name, such as a model or a branch, that should never be long."""
    return cut_bytes(sanitize(text), LABEL_BYTES)


def directory_of(cwd: str) -> str:
    """Return a working directory, empty when it cannot be one: damaged or too long."""
    clean = sanitize(cwd)
    is_sound = "\ufffd" not in clean and len(clean.encode()) <= _PATH_BYTES
    return clean if is_sound else ""


def is_id(text: str) -> bool:
    """Say whether a text may name a session (behaviour B5)."""
    return _ID.fullmatch(text) is not None


def exact_parts(numbers: list[float]) -> list[float]:
    """Return a few numbers that have exactly the same sum.

    So ``math.fsum`` gives the same result in whatever steps the numbers came together.
    """
    parts: list[float] = []
    while rest := math.fsum((*numbers, *(-part for part in parts))):
        parts.append(rest)
    return parts


def _within_range(number: int) -> int:
    return min(max(number, 0), MAX_COUNT)
