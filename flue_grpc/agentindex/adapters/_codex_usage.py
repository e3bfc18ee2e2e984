"""Counting the tokens of a Codex thread from its running totals (formats §3.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from flue_grpc.agentindex.adapters._ledger_keys import key_of
from flue_grpc.agentindex.adapters._tally import NO_TOKENS, capped, is_count, maximum, minus
from flue_grpc.agentindex.adapters.base import LineUsage
from flue_grpc.agentindex.values import TokenUsage
from flue_grpc.limits import PROVISIONAL_LINES

if TYPE_CHECKING:
    from flue_grpc.agentindex.adapters._codex_pieces import Totals
    from flue_grpc.agentindex.adapters.base import Ledger


class Counter(msgspec.Struct):
    """The total of the last event, and what all own ones added: what follows is the difference.

    A total that falls has started again from zero, so all of it is new. A cache count may
    fall alone; then ``added`` can be below zero for a while, which counts as zero.
    """

    known: TokenUsage = NO_TOKENS
    input: int = 0
    output: int = 0
    added: TokenUsage = NO_TOKENS

    def take(self, totals: Totals, *, is_own: bool) -> TokenUsage:
        """Take in a new total; return what it adds, nothing if it is inherited."""
        tokens = tokens_of(totals)
        total_input, output = totals.input_tokens or 0, totals.output_tokens or 0
        is_reset = total_input < self.input or output < self.output
        step = tokens if is_reset else minus(tokens, self.known)
        self.known, self.input, self.output = tokens, total_input, output
        if not is_own or step == NO_TOKENS:
            return NO_TOKENS
        before, added = self.added, self.added + step
        if is_count(before) and is_count(added):
            self.added = added
            return step
        self.added = added = capped(added)
        return minus(maximum(added, NO_TOKENS), maximum(before, NO_TOKENS))


class Provisional(msgspec.Struct):
    """Lines whose figures hold until something better turns up in the file."""

    lines: list[LineUsage] = []

    def add(self, line: LineUsage) -> None:
        """Remember a line; those past the limit are merged into the last one."""
        if len(self.lines) >= PROVISIONAL_LINES:
            last = self.lines.pop()
            tokens, count = last.tokens + line.tokens, last.message_count + line.message_count
            line = LineUsage(last.ts, last.model, tokens, None, count)
        self.lines.append(line)

    def take_back(self) -> list[LineUsage]:
        """Return the lines that undo all that were added, and forget them."""
        undone = [
            LineUsage(line.ts, line.model, minus(NO_TOKENS, line.tokens), None, -line.message_count)
            for line in self.lines
        ]
        self.lines = []
        return undone


def raise_turn(turn: str, totals: Totals, ledger: Ledger) -> TokenUsage:
    """Return what a snapshot of a turn adds to the largest one so far (formats §3.6-4)."""
    key = key_of(turn)
    known = ledger.get(key) or NO_TOKENS
    raised = maximum(known, tokens_of(totals))
    if raised == known:
        return NO_TOKENS
    ledger.put(key, raised)
    return minus(raised, known)


def tokens_of(totals: Totals) -> TokenUsage:
    """Return counts in disjoint buckets: Codex's input has both cache counts in it."""
    read = totals.cached_input_tokens or 0
    write = totals.cache_write_input_tokens or totals.cache_creation_input_tokens or 0
    uncached = max((totals.input_tokens or 0) - read - write, 0)
    return TokenUsage(uncached, totals.output_tokens or 0, read, write)


def is_zero(totals: Totals) -> bool:
    """Say whether an event tells of no tokens at all."""
    return not totals.input_tokens and tokens_of(totals) == NO_TOKENS
