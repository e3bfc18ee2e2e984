"""One transcript read twice: by the product and by the oracle."""

from __future__ import annotations

import json
import re

from flue_grpc.agentindex.adapters.base import Root, Source
from tests.corpus import oracle_claude, oracle_codex, oracle_pi
from tests.corpus.oracle import Said
from tests.unit.agentindex.reading import ADAPTERS, Reading

UUID = "0123abcd-0000-4000-8000-00000000000f"


def read(tool: str, data: bytes, name: str = "") -> Reading:
    """Feed a file from the place where its tool would keep it."""
    reading = Reading(tool, source=source_of(tool, data, name))
    reading.feed(data)
    return reading


def source_of(tool: str, data: bytes, name: str) -> Source:
    """Return what the adapter makes of the file's place."""
    if tool == "codex":
        root = Root("/r", "sessions")
        path = ("2026", "01", "02", f"rollout-2026-01-02T03-04-05-{UUID}.jsonl")
    elif tool == "pi":
        root, path = Root("/r", "sessions"), ("--p--", f"2026-01-02T03-04-05-000Z_{UUID}.jsonl")
    else:
        root = Root("/r", "projects")
        folder = re.sub("[^A-Za-z0-9-]", "-", first_text(data, "cwd")) or "-"
        is_agent = "subagent" in name
        path = (
            (folder, UUID, "subagents", "agent-a1.jsonl") if is_agent else (folder, f"{UUID}.jsonl")
        )
    source = ADAPTERS[tool].candidate(root, path)
    assert source is not None
    return source


def first_text(data: bytes, name: str) -> str:
    """Return the first text under a key, at any depth and however little the file parses."""
    match = re.search(rb'"%s":("(?:[^"\\]|\\.)*")' % name.encode(), data)
    return json.loads(match[1]) if match else ""


def expected_of(tool: str, data: bytes, source: Source) -> tuple[dict, list[Said]] | None:
    """Return the oracle's (fields of the summary, messages), None for no session."""
    if tool == "codex":
        found = oracle_codex.summary(data, session_id=source.id)
    elif tool == "pi":
        found = oracle_pi.summary(data, file_id=source.id)
    else:
        found = oracle_claude.summary(
            data,
            session_id=source.id,
            folder=source.folder,
            parent_id=source.parent_id,
            subagent=source.is_subagent,
        )
    if found is not None:
        fields = found[0]
        can_resume = fields["cwd"] and not fields["is_subagent"]
        fields["resume"] = (fields["cwd"], *fields["resume"]) if can_resume else None
    return found


def fields_of(summary) -> dict:
    """Return the product's summary in the oracle's form."""
    resume, tokens = summary.resume, summary.tokens
    names = "id cwd title first_prompt message_count tool_call_count prompt_count models cost_usd"
    names += " parent_id git_branch tool_version is_subagent"
    return {name: getattr(summary, name) for name in names.split()} | {
        "span": (summary.started_at, summary.ended_at),
        "tokens": (tokens.input, tokens.output, tokens.cache_read, tokens.cache_write),
        "resume": (resume.dir, resume.command, *resume.args) if resume else None,
    }


def said_of(message) -> Said:
    """Return one of the product's messages in the oracle's form."""
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
