"""A tool with the simplest accounting, to test the index by exact numbers.

A line is whole objects {"t": seconds, "in": tokens, "key": name, "model": name, "cost":
dollars}; each is one message, and of one key the largest "in" counts. {"system": true}
is no message, {"broken": true} makes the parser fail.
"""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING

import msgspec

from flue_grpc.agentindex.adapters.base import Context, LineUsage, Root, Source, Taken
from flue_grpc.agentindex.discovery import real_roots
from flue_grpc.agentindex.json_repair import whole_objects
from flue_grpc.agentindex.values import Message, Summary, TokenUsage

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000


class State(msgspec.Struct):
    messages: int = 0
    tokens: int = 0
    first: int | None = None
    last: int | None = None
    model: str = ""
    models: list[str] = []
    cost: float | None = None


class Logs:
    """Roots are <home>/logs (rank 0) and <home>/old (rank 1); <parent>~<name> is a subagent."""

    tool = "logs"
    state_type = State

    def roots(self, home, env):
        return (Root(f"{home}/logs", "logs"), Root(f"{home}/old", "old"))

    def candidate(self, root, relative):
        stem, dot, suffix = relative[-1].rpartition(".")
        if not dot or suffix != "jsonl":
            return None
        parent, tilde, _ = stem.rpartition("~")
        rank = int(root.kind == "old")
        return Source("logs", stem, parent, bool(tilde), rank, relative[0])

    def enters(self, root, relative):
        return relative[-1] != "private"

    def start(self, source):
        return State()

    def feed(self, state, block, ledger):
        usage, models, begin = [], [], 0
        for end in block.ends:
            before = self.context(state).model
            line = bytes(block.view[begin:end])
            usage += [self._take(state, data, ledger) for data in whole_objects(line)]
            begin = end + 1
            if self.context(state).model != before:
                models.append((end, self.context(state).model))
        return Taken([one for one in usage if one is not None], models)

    def _take(self, state, data, ledger):
        said = json.loads(data)
        if said.get("broken"):
            raise ValueError("the parser fails")
        model = state.model = said.get("model", state.model)
        if said.get("system"):
            return None
        if model not in state.models:
            state.models.append(model)
        ts = said["t"] * SECOND if "t" in said else None
        tokens = said.get("in", 0)
        if "key" in said:
            key = zlib.crc32(said["key"].encode())
            known = ledger.get(key)
            most = max(tokens, known.input if known else 0)
            ledger.put(key, TokenUsage(most))
            tokens = most - (known.input if known else 0)
        state.messages += 1
        state.tokens += tokens
        if ts is not None:
            state.first = ts if state.first is None else min(state.first, ts)
            state.last = ts if state.last is None else max(state.last, ts)
        if "cost" in said:
            state.cost = (state.cost or 0.0) + said["cost"]
        return LineUsage(ts, model, TokenUsage(tokens), said.get("cost"), 1)

    def context(self, state):
        return Context(state.model)

    def summary(self, state, source, file):
        if source.id.startswith("none"):
            return None
        return Summary(
            id=source.id,
            tool="logs",
            cwd=f"/{source.folder}",
            title="",
            first_prompt="",
            started_at=state.first,
            ended_at=state.last,
            message_count=state.messages,
            tool_call_count=0,
            models=tuple(state.models),
            tokens=TokenUsage(state.tokens),
            cost_usd=state.cost,
            file_size=file.size,
            resume=None,
            prompt_count=0,
            parent_id=source.parent_id,
            git_branch="",
            tool_version="",
            subagent_tokens=TokenUsage(),
            updated_at=file.mtime,
            revision=file.revision,
            is_subagent=source.is_subagent,
        )

    def messages(self, line, offset, context):
        texts = [data.decode() for data in whole_objects(line)]
        return [
            Message("user", "text", text, offset, index) for index, text in enumerate(texts)
        ], context


def log(**said):
    """Write one object, without a newline."""
    return json.dumps(said).encode()


class Home:
    """A home with the two roots and an index directory beside it."""

    def __init__(self, base: Path) -> None:
        self.path = base / "home"
        self.directory = base / "config" / "agents"
        (self.path / "logs").mkdir(parents=True)
        (self.path / "old").mkdir()
        self.adapters = {"logs": Logs()}

    @property
    def roots(self):
        return real_roots((Logs(),), str(self.path), {})

    def write(self, name, *lines, tail=b""):
        """Write a transcript below the home; each of ``lines`` gets its newline."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(line + b"\n" for line in lines) + tail)
        return path

    def append(self, name, *lines, tail=b""):
        with (self.path / name).open("ab") as file:
            file.write(b"".join(line + b"\n" for line in lines) + tail)
