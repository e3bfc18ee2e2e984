"""Codex, read a second time (see ``oracle``)."""

from __future__ import annotations

import re

from tests.corpus.oracle import (
    Record,
    Said,
    an_id,
    as_blocks,
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
    payload,
    prompt,
    read_records,
    span,
    string,
    text_at,
    title,
)
from tests.corpus.oracle_codex_tokens import tokens

PLAIN = """user_instructions|instructions|environment_context|permissions instructions
collaboration_mode|sandbox_mode|approval_policy|apps_instructions|skills_instructions
plugins_instructions|recommended_plugins|user_shell_command|turn_aborted
subagent_notification|additional_context|goal_context|realtime_conversation|model_switch
personality_spec""".replace("\n", "|")
ENVELOPE = re.compile(
    rf"<({PLAIN})>.*?</\1>|<(skill|hook_prompt|codex_internal_context)[\s>].*?</\2>"
    r"|# AGENTS\.md instructions.*?</INSTRUCTIONS>",
    re.DOTALL | re.IGNORECASE,
)
OPENED = re.compile(
    rf"<(?:{PLAIN})>|<(?:skill|hook_prompt|codex_internal_context)[\s>]"
    r"|# AGENTS\.md instructions",
    re.IGNORECASE,
)
ITEMS = {
    "message",
    "agent_message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "web_search_call",
    "tool_search_call",
    "tool_search_output",
    "image_generation_call",
}
TEXTS = {"input_text", "output_text", "text"}
TWO_SECONDS = 2_000_000


def split(text: str) -> tuple[str, str]:
    rest = text.strip()
    consumed = False
    while match := ENVELOPE.match(rest):
        rest, consumed = rest[match.end() :].lstrip(), True
    if not rest or OPENED.match(rest):
        return (text, "") if consumed or rest else ("", text)
    if not consumed:
        return "", text
    at = text.rindex(rest)
    return text[:at].rstrip(), text[at:]


def request(text: str) -> str:
    marker = "## My request for Codex:"
    return (text.split(marker, 1)[1] if marker in text else text).strip()


def user_text(text: str) -> list[Said]:
    if not text or re.fullmatch(r"\s*(<image(\s[^>]*)?>|</image>)\s*", text, re.IGNORECASE):
        return []
    harness, person = split(text)
    said = [Said("system", "text", harness)] if harness else []
    return said + ([Said("user", "text", person)] if person else [])


def message(item: dict) -> list[Said]:
    role = string(item.get("role"))
    said = []
    for block in as_blocks(item.get("content")):
        kind = string(member(block, "type"))
        text = string(member(block, "refusal" if kind == "refusal" else "text"))
        picture = {"input_image": "[image]", "input_file": "[document]"}.get(kind)
        speaker = {"developer": "system"}.get(role, role)
        if speaker not in {"user", "assistant", "system"}:
            continue
        if picture:
            said.append(Said(speaker, "text", picture))
        elif kind in TEXTS and role == "user":
            said += user_text(text)
        elif text and kind in TEXTS | {"refusal"} and role != "user":
            said.append(Said(speaker, "text", text))
    return said


CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "web_search_call": "action",
    "tool_search_call": "arguments",
}


def item_messages(item: dict) -> list[Said]:
    kind = string(item.get("type"))
    if kind == "message":
        return message(item)
    if kind == "agent_message":
        return message({**item, "role": "system"})
    if kind == "reasoning":
        blocks = as_blocks(item.get("summary")) + as_blocks(item.get("content"))
        texts = [string(member(block, "text")) for block in blocks]
        text = "\n".join(filter(None, texts))
        return [Said("assistant", "thinking", text)] if text else []
    if kind in CALLS or kind == "image_generation_call":
        return [call(item, kind)]
    return [output(item, kind)] if kind.endswith("_output") and kind in ITEMS else []


def call(item: dict, kind: str) -> Said:
    name = ".".join(filter(None, [string(item.get("namespace")), string(item.get("name"))]))
    if not kind.startswith(("function", "custom")):
        name = kind.removesuffix("_call")
    text = "[image]"
    if kind in CALLS:
        text = input_text(item.get(CALLS[kind]), present=CALLS[kind] in item)
    return Said("assistant", "tool_call", text, name, string(item.get("call_id")))


def output(item: dict, kind: str) -> Said:
    name, text, failed = string(item.get("name")), "", False
    if kind == "tool_search_output":
        key = "output" if "output" in item else "tools"
        name, text = "tool_search", input_text(item.get(key), present=key in item)
    else:
        body = item.get("output")
        failed = isinstance(body, dict) and body.get("success") is False
        text = output_text(body.get("content", body) if isinstance(body, dict) else body)
    return Said("user", "tool_result", text, name, string(item.get("call_id")), failed)


def event_messages(event: dict) -> list[Said]:
    text = string(event.get("message"))
    if event.get("type") == "agent_message":
        return [Said("assistant", "text", text)] if text else []
    if event.get("type") != "user_message":
        return []
    if string(event.get("kind")) not in {"", "plain"}:
        return [Said("system", "text", text)] if text else []
    if text.strip():
        harness, person = split(text)
        said = [Said("system", "text", harness)] if harness else []
        return said + ([Said("user", "text", person)] if person else [])
    return [Said("user", "text", "[image]")] if pictures(event) else []


def pictures(event: dict) -> bool:
    lists = (event.get("images"), event.get("local_images"))
    return any(isinstance(one, list) and one for one in lists)


def normal(record: Record) -> None:
    """Give a bare line of 2025 the form of today."""
    value = record.value
    if isinstance(value.get("payload"), dict):
        return
    kind = value.get("type")
    if string(kind) in ITEMS:
        record.value = {**value, "type": "response_item", "payload": value}
    elif kind is None and string(value.get("id")):
        record.value = {**value, "type": "session_meta", "payload": value}


def is_event(record: Record, name: str) -> bool:
    return record.value.get("type") == "event_msg" and payload(record).get("type") == name


def own_records(records: list[Record]) -> list[Record]:
    """Leave out the lines that were copied from a parent."""
    metas = [r for r in records if r.value.get("type") == "session_meta" and payload(r)]
    own = metas[0] if metas else None
    first = count(payload(own).get("subagent_history_start_ordinal")) if own else None
    began = moment(own.value.get("timestamp")) if own else None
    copied_at, in_copies, found = None, False, []
    past = False
    for record in records:
        when = moment(record.value.get("timestamp"))
        if not isinstance(record.value.get("payload"), dict):
            continue
        if record.value.get("type") == "session_meta":
            foreign = record is not own and string(payload(record).get("id"))
            if foreign and foreign != string(payload(own).get("id")) and not past:
                in_copies, copied_at = True, when
            continue
        ordinal = count(record.value.get("ordinal"))
        if first and ordinal is not None:
            copied = ordinal < first
        else:
            copied = (
                in_copies
                and when is not None
                and (
                    (began is not None and when < began)
                    or (copied_at is not None and when <= copied_at + TWO_SECONDS)
                )
            )
            past = past or not copied
            in_copies = in_copies and copied
        if not copied:
            found.append(record)
    return found


def speak(records: list[Record]) -> None:
    native = any(
        r.value.get("type") == "response_item"
        and payload(r).get("type") == "message"
        and text_at(payload(r), "role") in {"user", "assistant"}
        for r in records
    )
    model = ""
    for record in records:
        body, kind = payload(record), record.value.get("type")
        if kind == "turn_context":
            model = string(body.get("model")) or model
        elif kind == "response_item":
            record.said = item_messages(body)
        elif kind == "compacted" and string(body.get("message")):
            record.said = [Said("system", "text", string(body["message"]))]
        elif kind == "event_msg" and not native:
            record.said = event_messages(body)
        for one in record.said:
            one.ts = moment(record.value.get("timestamp"))
            one.model = model if one.role == "assistant" else ""


def first_prompt(own: list[Record]) -> str:
    for record in own:
        body = payload(record)
        if is_event(record, "user_message") and string(body.get("kind")) in {"", "plain"}:
            text = string(body.get("message"))
            found = prompt(request(split(text)[1])) if text.strip() else ""
            found = found or "[image]" * (pictures(body) and not text.strip())
            if found:
                return found
    messages = [r for r in own if r.value.get("type") == "response_item"]
    blocks = [first_prompt_of(r, request) for r in messages if payload(r).get("role") == "user"]
    goals = [
        prompt(text_at(payload(r), "goal", "objective"))
        for r in own
        if is_event(r, "thread_goal_updated")
    ]
    return next(filter(None, blocks + goals), "")


def find_directory(records: list[Record], meta: dict) -> str:
    turns = [directory(payload(r)) for r in records if r.value.get("type") == "turn_context"]
    named = []
    for record in records:
        if payload(record).get("role") != "user":
            continue
        for one in record.said:
            if one.text.strip().lower().startswith("<environment_context>"):
                match = re.search(
                    r"<cwd>([^<]*)</cwd>|(?m:^)Current working directory:(.*)", one.text
                )
                if match:
                    named.append((match[1] or match[2] or "").strip())
    named = [cwd for cwd in named if "\ufffd" not in cwd]
    return next(filter(None, [directory(meta), *turns, *named]), "")


def summary(data: bytes, *, session_id: str) -> tuple:
    """Return (fields of the summary, messages)."""
    records = read_records(data)
    for record in records:
        normal(record)
    speak(records)
    said = number_messages(records)
    metas = [payload(r) for r in records if r.value.get("type") == "session_meta" and payload(r)]
    meta = metas[0] if metas else {}
    mine = [m for m in metas if string(m.get("id")) in {"", string(meta.get("id"))}]
    own = own_records(records)
    spawn = member(member(member(meta, "source"), "subagent"), "thread_spawn")
    subagent = bool(
        meta.get("thread_source") == "subagent" or member(meta.get("source"), "subagent")
    )
    parent = text_at(meta, "parent_thread_id") or text_at(spawn, "parent_thread_id")
    fork = bool(subagent or parent or text_at(meta, "forked_from_id") or len(metas) > len(mine))
    first = first_prompt(own)
    names = [
        title(text_at(payload(r), "thread_name")) for r in own if is_event(r, "thread_name_updated")
    ]
    models = [
        text_at(payload(r), "model") for r in records if r.value.get("type") == "turn_context"
    ]
    return {
        "id": session_id,
        "cwd": find_directory(records, meta),
        "title": ([""] + [name for name in names if name])[-1] or title(first),
        "first_prompt": first,
        "span": span([one for record in own for one in record.said]),
        **counts(said),
        "models": distinct(models),
        "tokens": tokens(records, own, fork=fork),
        "cost_usd": None,
        "parent_id": an_id(parent or text_at(meta, "forked_from_id")) if subagent else "",
        "git_branch": ([""] + [b for m in mine if (b := text_at(m, "git", "branch"))])[-1],
        "tool_version": ([""] + [v for m in mine if (v := text_at(m, "cli_version"))])[-1],
        "is_subagent": subagent,
        "resume": ["codex", "resume", session_id],
    }, said
