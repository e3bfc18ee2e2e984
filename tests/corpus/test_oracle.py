"""Every summary and every message of every real transcript, against a second reading."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from flue_grpc.agentindex.adapters.base import Context, FileFacts, MemoryLedger, Root, Source
from flue_grpc.agentindex.adapters.registry import ADAPTERS
from flue_grpc.agentindex.lines import split_lines
from flue_grpc.agentindex.values import TokenUsage
from tests.corpus import oracle_claude, oracle_codex, oracle_pi
from tests.corpus.oracle import Said, objects_of

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
FILES = sorted(CORPUS.glob("*/*.jsonl"))
pytestmark = pytest.mark.skipif(not FILES, reason="no corpus beside the repository")

each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
BY_TOOL = {adapter.tool: adapter for adapter in ADAPTERS}
GROWN = [
    ("claude/04-2.1.62-earlier.jsonl", "claude/03-2.1.62.jsonl"),
    ("codex/04-0.63.0-earlier.jsonl", "codex/03-0.63.0.jsonl"),
]
GLUED = ["claude/07-2.1.12.jsonl", "pi/01-v1.jsonl", "pi/02-v1.jsonl"]
FACTS = FileFacts(size=1, mtime=2, revision="r")
UUID = "0123abcd-0000-4000-8000-00000000000f"


def first_member(data: bytes, name: str) -> str:
    """Return the first text under a key, at any depth and however little the file parses."""
    match = re.search(rb'"%s":"((?:[^"\\]|\\.)*)"' % name.encode(), data)
    return json.loads(b'"' + match[1] + b'"') if match else ""


def place(path: Path, data: bytes) -> tuple[Root, tuple[str, ...]]:
    """Say where the tool would keep the file."""
    tool = path.parent.name
    if tool == "codex":
        return Root("/r", "sessions"), (
            "2026",
            "01",
            "02",
            f"rollout-2026-01-02T03-04-05-{UUID}.jsonl",
        )
    if tool == "pi":
        return Root("/r", "sessions"), ("--p--", f"2026-01-02T03-04-05-000Z_{UUID}.jsonl")
    folder = re.sub("[^A-Za-z0-9-]", "-", first_member(data, "cwd"))
    if "subagent" in path.name:
        return Root("/r", "projects"), (folder, UUID, "subagents", "agent-a1.jsonl")
    return Root("/r", "projects"), (folder, f"{UUID}.jsonl")


def source_of(path: Path, data: bytes) -> Source:
    source = BY_TOOL[path.parent.name].candidate(*place(path, data))
    assert source is not None
    return source


def second_reading(path: Path, data: bytes, source: Source):
    if path.parent.name == "codex":
        return oracle_codex.summary(data, session_id=source.id)
    if path.parent.name == "pi":
        return oracle_pi.summary(data, file_id=source.id)
    return oracle_claude.summary(
        data,
        session_id=source.id,
        folder=source.folder,
        parent_id=source.parent_id,
        subagent=source.is_subagent,
    )


class Reading:
    """What the product makes of a file."""

    def __init__(self, path: Path, data: bytes):
        self.adapter = BY_TOOL[path.parent.name]
        self.source = source_of(path, data)
        self.state = self.adapter.start(self.source)
        self.ledger = MemoryLedger()
        self.usage = []
        self.feed(data)
        self.data = data

    def feed(self, data: bytes):
        for line in split_lines(data, 0):
            self.usage += self.adapter.feed(self.state, line.data, line.offset, self.ledger)

    def summary(self):
        return self.adapter.summary(self.state, self.source, FACTS)

    def messages(self):
        context = Context(mirror=self.adapter.context(self.state).mirror)
        found = []
        for line in split_lines(self.data, 0):
            messages, context = self.adapter.messages(line.data, line.offset, context)
            found += messages
        return found


def fields_of(summary) -> dict:
    resume = summary.resume
    tokens = summary.tokens
    return {
        "id": summary.id,
        "cwd": summary.cwd,
        "title": summary.title,
        "first_prompt": summary.first_prompt,
        "span": (summary.started_at, summary.ended_at),
        "message_count": summary.message_count,
        "tool_call_count": summary.tool_call_count,
        "prompt_count": summary.prompt_count,
        "models": summary.models,
        "tokens": (tokens.input, tokens.output, tokens.cache_read, tokens.cache_write),
        "cost_usd": summary.cost_usd,
        "parent_id": summary.parent_id,
        "git_branch": summary.git_branch,
        "tool_version": summary.tool_version,
        "is_subagent": summary.is_subagent,
        "resume": (resume.dir, resume.command, *resume.args) if resume else None,
    }


def as_said(message) -> Said:
    return Said(
        message.role,
        message.kind,
        message.text,
        message.tool_name,
        message.call_id,
        message.is_error,
        message.offset,
        message.index,
        message.ts,
        message.model,
        message.sidechain,
    )


@each_file
def test_the_summary_is_what_a_second_reading_says(path):
    data = path.read_bytes()
    reading = Reading(path, data)
    expected = second_reading(path, data, reading.source)
    if expected is None:
        assert reading.summary() is None
        return
    fields, _ = expected
    can_resume = fields["cwd"] and not fields["is_subagent"]
    fields["resume"] = (fields["cwd"], *fields["resume"]) if can_resume else None
    assert fields_of(reading.summary()) == fields
    assert reading.summary().tool == path.parent.name
    assert reading.summary().subagent_tokens == TokenUsage()
    assert (reading.summary().file_size, reading.summary().updated_at) == (1, 2)


@each_file
def test_the_messages_are_what_a_second_reading_says(path):
    data = path.read_bytes()
    reading = Reading(path, data)
    expected = second_reading(path, data, reading.source)
    if expected is None:
        return
    found = [as_said(message) for message in reading.messages()]
    for one, other in zip(found, expected[1], strict=False):
        assert one == other
    assert len(found) == len(expected[1])


@each_file
def test_the_usage_of_the_lines_sums_up_to_the_summary(path):
    reading = Reading(path, path.read_bytes())
    summary = reading.summary()
    if summary is None:
        return
    total = TokenUsage()
    for usage in reading.usage:
        total += usage.tokens
    assert total == summary.tokens
    assert sum(usage.message_count for usage in reading.usage) == summary.message_count
    assert all(usage.tokens.output >= 0 and usage.message_count >= 0 for usage in reading.usage)


@each_file
def test_a_file_fed_in_two_steps_is_a_file_fed_at_once(path):
    data = path.read_bytes()
    whole = Reading(path, data)
    cut = data.rfind(b"\n", 0, len(data) // 2) + 1
    steps = Reading(path, data[:cut])
    state = msgspec.msgpack.encode(steps.state)
    steps.state = msgspec.msgpack.decode(state, type=steps.adapter.state_type)
    steps.feed(data[cut:])
    assert steps.state == whole.state
    assert steps.summary() == whole.summary()
    assert steps.usage == whole.usage
    assert steps.ledger.entries == whole.ledger.entries


@pytest.mark.parametrize(("earlier", "later"), GROWN)
def test_a_file_that_grew_reads_as_one_read_at_once(earlier, later):
    path = CORPUS / later
    data, before = path.read_bytes(), (CORPUS / earlier).read_bytes()
    assert data.startswith(before)
    assert before.endswith(b"\n")
    whole, grown = Reading(path, data), Reading(path, before)
    assert grown.summary() != whole.summary()
    grown.feed(data[len(before) :])
    assert grown.summary() == whole.summary()
    assert grown.usage == whole.usage


@pytest.mark.parametrize("name", GLUED)
def test_objects_glued_on_one_line_lose_nothing(name):
    path = CORPUS / name
    data = path.read_bytes()
    glued = [line for line in data.split(b"\n") if len(objects_of(line)) > 1]
    assert glued
    apart = data
    for line in glued:
        apart = apart.replace(line, line.replace(b"}{", b"}\n{"))
    together, divided = Reading(path, data), Reading(path, apart)
    assert fields_of(together.summary()) == fields_of(divided.summary())
    assert together.usage == divided.usage
    texts = [message.text for message in together.messages()]
    assert texts == [message.text for message in divided.messages()]
