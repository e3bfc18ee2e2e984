"""What the summaries of all tools count (behaviour B5)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.agentindex.adapters._json_values import MAX_COUNT
from flue_grpc.agentindex.adapters._pieces import (
    SYSTEM_TEXT,
    TOOL_CALL,
    USER_TEXT,
    Piece,
)
from flue_grpc.agentindex.adapters.base import LineUsage
from flue_grpc.agentindex.values import TokenUsage
from flue_grpc.limits import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterable

NO_TOKENS: Final = TokenUsage()
_LARGEST: Final = TokenUsage(MAX_COUNT, MAX_COUNT, MAX_COUNT, MAX_COUNT)


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
        """Take in the messages and tokens of a record; return what it adds, if anything.

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
        if self.started_at is None or self.ended_at is None:
            self.started_at = self.ended_at = ts
        elif ts > self.ended_at:
            self.ended_at = ts
        elif ts < self.started_at:
            self.started_at = ts

    def add(self, tokens: TokenUsage) -> TokenUsage:
        """Add tokens; return what was added: less only where a sum would leave 0 to 2^63-1."""
        total_input, output = self.input + tokens.input, self.output + tokens.output
        read, write = self.cache_read + tokens.cache_read, self.cache_write + tokens.cache_write
        if not 0 <= (total_input | output | read | write) <= MAX_COUNT:
            return self._add_within_range(tokens)
        self.input = total_input
        self.output = output
        self.cache_read = read
        self.cache_write = write
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


def is_count(tokens: TokenUsage) -> bool:
    """Say whether each bucket is within 0 to 2^63-1."""
    return 0 <= (tokens.input | tokens.output | tokens.cache_read | tokens.cache_write) <= MAX_COUNT


def capped(tokens: TokenUsage) -> TokenUsage:
    """Cut each bucket to what fits into 64 bits."""
    return minus(tokens, maximum(minus(tokens, _LARGEST), NO_TOKENS))


def maximum(one: TokenUsage, other: TokenUsage) -> TokenUsage:
    """Take the larger number of each bucket."""
    a, b, c, d = one.input, one.output, one.cache_read, one.cache_write
    e, f, g, h = other.input, other.output, other.cache_read, other.cache_write
    return TokenUsage(
        a if a > e else e,  # noqa: FURB136 - max() costs three times as much, on most lines
        b if b > f else f,  # noqa: FURB136
        c if c > g else g,  # noqa: FURB136
        d if d > h else h,  # noqa: FURB136
    )


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
