"""Counting each API response of Claude Code once (formats §2.6).

A response is written in several lines that repeat its usage, the output growing, and
may be written again later. Of each request the componentwise maximum counts; a line
adds what it raises that maximum by.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.agentindex.adapters._claude_pieces import Usage
from flue_grpc.agentindex.adapters._json_values import MAX_COUNT
from flue_grpc.agentindex.adapters._ledger_keys import key_of
from flue_grpc.agentindex.adapters._tally import NO_TOKENS, capped, maximum, minus
from flue_grpc.agentindex.values import TokenUsage
from flue_grpc.limits import LABEL_BYTES

if TYPE_CHECKING:
    from flue_grpc.agentindex.adapters._claude_pieces import CacheCreation, Line
    from flue_grpc.agentindex.adapters.base import Ledger

# What a key of the ledger stands for: mixed into the hash of the name.
_REQUEST: Final = 0  # the maximum of a request
_BRANCH: Final = 1  # the maximum of a request that only sidechain lines have so far
_MAIN: Final = 2  # marks a message id of the main chain
_REPLAYED: Final = 3  # what sidechain lines of a message id added
_NO_REQUEST: Final = "\n"  # in front of a message id that stands for a request


class Requests(msgspec.Struct):
    """What is counted; the request of the last line is at hand, the next is often the same.

    A sidechain line may replay a message of the main chain under another request. It is
    dropped; if it came first, the line of the main chain takes back what it added.
    """

    name: str = ""
    key: int = 0
    known: TokenUsage = NO_TOKENS
    last: Usage | None = None
    message_id: str = ""
    has_branches: bool = False

    def count(self, line: Line, ledger: Ledger, *, is_branch: bool) -> TokenUsage:
        """Return what a line adds to its transcript."""
        message = line.message
        if message is None or message.usage is None:
            return NO_TOKENS
        message_id = message.id or ""
        name = line.request_id or (message_id and _NO_REQUEST + message_id)
        if not name:
            return _tokens_of(message.usage)
        is_same = name == self.name and message_id == self.message_id
        if is_same and message.usage == self.last:
            return NO_TOKENS
        usage = _tokens_of(message.usage)
        if len(name) > LABEL_BYTES or len(message_id) > LABEL_BYTES:
            name, message_id = _short(name), _short(message_id)
        if is_branch:
            return self._count_branch(name, message_id, usage, ledger)
        taken_back = NO_TOKENS if is_same else self._turn_to(name, message_id, ledger)
        self.last = message.usage
        added = self._raise(usage, ledger)
        return added if taken_back is NO_TOKENS else minus(added, taken_back)

    def _raise(self, usage: TokenUsage, ledger: Ledger) -> TokenUsage:
        known = self.known
        if usage is NO_TOKENS:
            ledger.put(self.key, known)
        raised = usage if known is NO_TOKENS else maximum(known, usage)
        if raised == known:
            return NO_TOKENS
        self.known = raised
        ledger.put(self.key, raised)
        return usage if known is NO_TOKENS else minus(raised, known)

    def _turn_to(self, name: str, message_id: str, ledger: Ledger) -> TokenUsage:
        """Take up a request of the main chain; return what sidechain lines counted of it."""
        if name != self.name:
            self.name, self.key = name, key_of(name) ^ _REQUEST
            known = ledger.get(self.key)
            self.known = NO_TOKENS if known is None else known
            if known is None and self.has_branches:
                self._adopt(message_id, ledger)
        self.message_id = message_id
        if not message_id:
            return NO_TOKENS
        ledger.put(key_of(message_id) ^ _MAIN, NO_TOKENS)
        if not self.has_branches:
            return NO_TOKENS
        pool_key = key_of(message_id) ^ _REPLAYED
        replayed = ledger.get(pool_key) or NO_TOKENS
        ledger.put(pool_key, NO_TOKENS)
        return NO_TOKENS if replayed == NO_TOKENS else replayed

    def _adopt(self, message_id: str, ledger: Ledger) -> None:
        """Go on with what sidechain lines counted of the very same request."""
        branch_key, pool_key = key_of(self.name) ^ _BRANCH, key_of(message_id) ^ _REPLAYED
        own = ledger.get(branch_key) or NO_TOKENS
        if own == NO_TOKENS:
            return
        self.known = own
        ledger.put(self.key, own)
        ledger.put(branch_key, NO_TOKENS)
        pool = ledger.get(pool_key) or NO_TOKENS
        ledger.put(pool_key, maximum(minus(pool, own), NO_TOKENS))

    def _count_branch(
        self, name: str, message_id: str, usage: TokenUsage, ledger: Ledger
    ) -> TokenUsage:
        key = key_of(name) ^ _REQUEST
        known = ledger.get(key)
        if known is not None:
            self.name, self.key, self.known, self.last = name, key, known, None
            return self._raise(usage, ledger)
        if message_id and ledger.get(key_of(message_id) ^ _MAIN) is not None:
            return NO_TOKENS
        self.has_branches = True
        branch_key, pool_key = key_of(name) ^ _BRANCH, key_of(message_id) ^ _REPLAYED
        known = ledger.get(branch_key) or NO_TOKENS
        raised = maximum(known, usage)
        added = minus(raised, known)
        ledger.put(branch_key, raised)
        if message_id:
            ledger.put(pool_key, capped((ledger.get(pool_key) or NO_TOKENS) + added))
        return added


def _tokens_of(usage: Usage) -> TokenUsage:
    cache_write = usage.cache_creation_input_tokens
    if cache_write is None:
        cache_write = _cache_write_of(usage.cache_creation)
    tokens = TokenUsage(
        usage.input_tokens or 0,
        usage.output_tokens or 0,
        usage.cache_read_input_tokens or 0,
        cache_write,
    )
    return NO_TOKENS if tokens == NO_TOKENS else tokens


def _cache_write_of(creation: CacheCreation | None) -> int:
    if creation is None:
        return 0
    short, long = creation.ephemeral_5m_input_tokens, creation.ephemeral_1h_input_tokens
    return min((short or 0) + (long or 0), MAX_COUNT)


def _short(name: str) -> str:
    # A state keeps names of the last line; a damaged one may be very long.
    return name if len(name) <= LABEL_BYTES else blake2b(name.encode()).hexdigest()
