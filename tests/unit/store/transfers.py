"""What tests of export and import share: a filled Store, and lines made by hand."""

from __future__ import annotations

import json

import pytest

from flue_grpc.store.database import owned
from flue_grpc.store.exporting import WRITERS, export_session, export_sessions
from flue_grpc.store.importing import Importer
from flue_grpc.store.values import (
    COMPACTION_MARKER,
    DEFAULT_SETTINGS,
    Draft,
    ToolCall,
)

CALL = ToolCall(
    "c1",
    "function",
    "f",
    '{"b": 1,  "a": "\\u00e9<"}',
    (("sig", '{"x":  "A=="}'), ("odd", "no JSON")),
)


def fill(store):
    store.create_session("a talk", "Title\nwith two lines")
    store.create_session("sub", "subagent: dig")
    store.create_session("empty", "")
    store.append_message("a talk", Draft("user", "hello 数据 a\0b", images=("data:x", "")))
    store.append_message("a talk", Draft("assistant", "", "openai", (CALL,)))
    store.append_message("sub", Draft("user", "noise ```code```"))
    store.append_message("a talk", Draft("tool", "out```put", tool_call_id="c1", name="f"))
    store.append_message("a talk", Draft("system", "summary", name=COMPACTION_MARKER))


def exported(store, session_id="", name="jsonl"):
    readers, writer = store._database.readers, WRITERS[name]
    if session_id:
        return lines_of(export_session(readers, writer, session_id))
    return lines_of(export_sessions(readers, writer, pytest.fail))


def lines_of(parts):
    return b"".join(parts).splitlines(keepends=True)


def imported(target, lines):
    with owned(target, DEFAULT_SETTINGS) as connection:
        return Importer(connection).run(lines)


def line_of(content="x", session="s", **fields):
    entry = {
        "type": "message",
        "session_id": session,
        "role": "user",
        "created_at": "2026-01-01T00:00:00Z",
    }
    return json.dumps(entry | {"content": content} | fields).encode() + b"\n"


def head_of(session="s", messages=1, **fields):
    entry = {"type": "session", "id": session, "title": "t", "messages": messages}
    times = {"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}
    return json.dumps(entry | times | fields).encode() + b"\n"
