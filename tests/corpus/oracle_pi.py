"""Pi, read a second time (see ``oracle``)."""

from __future__ import annotations

import math
import re

from tests.corpus.oracle import (
    Number,
    Record,
    Said,
    an_id,
    as_blocks,
    as_tokens,
    count,
    counts,
    directory,
    distinct,
    first_prompt_of,
    input_text,
    member,
    moment,
    number_messages,
    output_text,
    prompt,
    read_records,
    span,
    string,
    text_at,
    title,
)

SKILL = re.compile(r'(<skill name="[^"]*" location="[^"]*">.*?</skill>)(?:\n\n(.*)|\s*)', re.DOTALL)


def prose(content: object, role: str) -> list[Said]:
    said = []
    for block in as_blocks(content):
        kind = string(member(block, "type"))
        text = text_at(block, "text")
        if kind in {"image", "document"}:
            said.append(Said(role, "text", f"[{kind}]"))
        elif kind == "text" and text:
            skill = SKILL.fullmatch(text) if role == "user" else None
            if skill:
                said.append(Said("system", "text", skill[1]))
                text = skill[2] or ""
            if text:
                said.append(Said(role, "text", text))
    return said


def assistant(message: dict) -> list[Said]:
    said = []
    for block in as_blocks(message.get("content")):
        kind = string(member(block, "type"))
        if kind == "text" and text_at(block, "text"):
            said.append(Said("assistant", "text", text_at(block, "text")))
        elif kind == "thinking" and text_at(block, "thinking"):
            if block.get("redacted") is not True:
                said.append(Said("assistant", "thinking", text_at(block, "thinking")))
        elif kind == "toolCall":
            text = input_text(block.get("arguments"), present="arguments" in block)
            name, call = string(block.get("name")), string(block.get("id"))
            said.append(Said("assistant", "tool_call", text, name, call))
        elif kind in {"image", "document"}:
            said.append(Said("assistant", "text", f"[{kind}]"))
    failed = string(message.get("stopReason")) in {"error", "aborted"}
    if not said and failed and string(message.get("errorMessage")):
        said.append(Said("system", "text", string(message["errorMessage"])))
    return said


def message_messages(message: dict) -> list[Said]:
    role = string(message.get("role"))
    said = []
    if role == "user":
        said = prose(message.get("content"), "user")
    elif role == "assistant":
        said = assistant(message)
    elif role == "toolResult":
        text = output_text(message.get("content"))
        name, call = string(message.get("toolName")), string(message.get("toolCallId"))
        failed = message.get("isError") is True
        said = [Said("user", "tool_result", text, name, call, failed)]
    elif role == "bashExecution":
        lines = ["$ " + string(message.get("command")), string(message.get("output"))]
        said = [Said("system", "text", "\n".join(lines if lines[1] else lines[:1]))]
    elif role in {"custom", "hookMessage"}:
        said = prose(message.get("content"), "system")
    elif role in {"branchSummary", "compactionSummary"} and string(message.get("summary")):
        said = [Said("system", "text", string(message["summary"]))]
    return said


def when(record: Record) -> int | None:
    own = moment(record.value.get("timestamp"))
    return moment(member(record.value.get("message"), "timestamp")) if own is None else own


def speak(records: list[Record]) -> None:
    chosen = ""
    for record in records:
        value = record.value
        kind = text_at(value, "type")
        if kind in {"session", "model_change"}:
            chosen = string(value.get("modelId")) or chosen
        elif kind == "message" and isinstance(value.get("message"), dict):
            record.said = message_messages(value["message"])
        elif kind == "custom_message":
            record.said = prose(value.get("content"), "system")
        elif kind in {"compaction", "branch_summary"} and string(value.get("summary")):
            record.said = [Said("system", "text", string(value["summary"]))]
        for one in record.said:
            one.ts = when(record)
            if one.role == "assistant":
                one.model = text_at(value, "message", "model") or chosen


def usage_of(value: dict) -> dict | None:
    message = value.get("message")
    if value.get("type") == "message" and text_at(message, "role") in {"assistant", "toolResult"}:
        usage = message.get("usage")
    elif text_at(value, "type") in {"compaction", "branch_summary"}:
        usage = value.get("usage")
    else:
        usage = None
    return usage if isinstance(usage, dict) else None


def first_count(*values: object) -> int | None:
    return next((n for n in map(count, values) if n is not None), None)


def spent(records: list[Record]) -> tuple[tuple[int, int, int, int], float | None]:
    seen, usages, costs = set(), [], []
    for record in records:
        usage, name = usage_of(record.value), string(record.value.get("id"))
        if usage is None or name in seen:
            continue
        if name:
            seen.add(name)
        cache = usage.get("cache")
        four = (
            count(usage.get("input")),
            count(usage.get("output")),
            first_count(usage.get("cacheRead"), member(cache, "read")),
            first_count(
                usage.get("cacheWrite"), usage.get("cacheCreation"), member(cache, "write")
            ),
        )
        if all(n is None for n in four):
            four = (count(usage.get("totalTokens")), 0, 0, 0)
        usages.append(tuple(n or 0 for n in four))
        cost = member(usage.get("cost"), "total")
        if isinstance(cost, Number) and 0 <= float(cost) <= 1e9:
            costs.append(float(cost))
    return as_tokens(usages), math.fsum(costs) if costs else None


def first_prompt(record: Record) -> str:
    texts = [one.text.strip() for one in record.said if one.role == "user" and one.kind == "text"]
    words = [text for text in texts if text and text not in {"[image]", "[document]"}]
    return prompt(" ".join(words)) or first_prompt_of(record)


def summary(data: bytes, *, file_id: str) -> tuple | None:
    """Return (fields of the summary, messages), None for a file that is no session."""
    records = read_records(data)
    while records and records[0].value.get("type") == "title":
        del records[0]
    if not records or records[0].value.get("type") != "session":
        return None
    header = records[0].value
    speak(records)
    said = number_messages(records)
    session_id = an_id(string(header.get("id"))) or file_id
    first = next(filter(None, map(first_prompt, records)), "")
    infos = [r.value for r in records if r.value.get("type") == "session_info"]
    names = [name for info in infos if (name := title(text_at(info, "name")))]
    models = []
    chosen = ""
    for record in records:
        if text_at(record.value, "type") in {"session", "model_change"}:
            chosen = text_at(record.value, "modelId") or chosen
        if text_at(record.value, "message", "role") == "assistant":
            models.append(text_at(record.value, "message", "model") or chosen)
    tokens, cost = spent(records)
    return {
        "id": session_id,
        "cwd": directory(header),
        "title": ["", *names][-1] or title(first),
        "first_prompt": first,
        "span": span(said),
        **counts(said),
        "models": distinct(models),
        "tokens": tokens,
        "cost_usd": cost,
        "parent_id": "",
        "git_branch": "",
        "tool_version": "",
        "is_subagent": False,
        "resume": ["pi", "--session", session_id],
    }, said
