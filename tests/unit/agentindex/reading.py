"""Reading hand-written transcripts with the adapters, as the index and the pages do."""

from __future__ import annotations

import json

import msgspec

from flue_grpc.agentindex.adapters.base import Context, FileFacts, MemoryLedger, Source
from flue_grpc.agentindex.adapters.claude import Claude
from flue_grpc.agentindex.adapters.codex import Codex
from flue_grpc.agentindex.adapters.pi import Pi
from flue_grpc.agentindex.lines import LineBlock, split_lines
from flue_grpc.agentindex.values import TokenUsage

UUID = "019f1f1f-0000-7000-8000-00000000000a"
FACTS = FileFacts(size=10, mtime=20, revision="r")
SOURCES = {
    "claude": Source("claude", UUID, folder="-home-dev-shop"),
    "codex": Source("codex", UUID),
    "pi": Source("pi", UUID),
}
ADAPTERS = {"claude": Claude(), "codex": Codex(), "pi": Pi()}


def as_bytes(*lines) -> bytes:
    """Make a transcript: each line is bytes as they are, or an object."""
    return b"".join(
        (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines
    )


def feed_line(adapter, state, line, ledger):
    """Feed one line; return what it adds."""
    return adapter.feed(state, LineBlock.of_line(line, 0), ledger).usage


class Reading:
    """A transcript that was fed, and can be fed more."""

    def __init__(self, tool: str, *lines, source: Source | None = None):
        self.adapter = ADAPTERS[tool]
        self.source = source or SOURCES[tool]
        self.state = self.adapter.start(self.source)
        self.ledger = MemoryLedger()
        self.data = b""
        self.usage = []
        self.feed(as_bytes(*lines))

    def feed(self, data: bytes):
        for line in split_lines(data, len(self.data)):
            self.usage += feed_line(self.adapter, self.state, line.data, self.ledger)
        self.data += data

    def store(self):
        """Save the state and load it, as between two sweeps."""
        state = msgspec.msgpack.encode(self.state)
        self.state = msgspec.msgpack.decode(state, type=self.adapter.state_type)

    @property
    def summary(self):
        return self.adapter.summary(self.state, self.source, FACTS)

    @property
    def messages(self):
        context = Context(mirror=self.adapter.context(self.state).mirror)
        found = []
        for line in split_lines(self.data, 0):
            messages, context = self.adapter.messages(line.data, line.offset, context)
            found += messages
        return found

    @property
    def said(self):
        """(role, kind, text) of every message."""
        return [(message.role, message.kind, message.text) for message in self.messages]

    @property
    def texts(self):
        return [message.text for message in self.messages]

    @property
    def tokens(self):
        """(input, output, cache read, cache write)."""
        tokens = self.summary.tokens
        return (tokens.input, tokens.output, tokens.cache_read, tokens.cache_write)

    @property
    def added(self):
        """What each line added: (input, output, cache read, cache write), zeros left out."""
        added = (
            (u.tokens.input, u.tokens.output, u.tokens.cache_read, u.tokens.cache_write)
            for u in self.usage
        )
        return [tokens for tokens in added if any(tokens)]

    def check_laws(self):
        """What a summary counts is what the pages show and what the lines add."""
        summary = self.summary
        total = TokenUsage()
        for usage in self.usage:
            total += usage.tokens
        if summary is None:
            return
        messages = self.messages
        counted = sum(message.role != "system" for message in messages)
        assert summary.message_count == counted
        assert summary.message_count == sum(usage.message_count for usage in self.usage)
        assert summary.tool_call_count == sum(m.kind == "tool_call" for m in messages)
        assert summary.prompt_count == sum(
            m.role == "user" and m.kind == "text" and not m.sidechain for m in messages
        )
        assert total == summary.tokens
