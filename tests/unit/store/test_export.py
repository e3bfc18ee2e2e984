from __future__ import annotations

import json
import re

import pytest

from flue_grpc import limits
from flue_grpc.errors import SessionNotFoundError
from flue_grpc.store import exporting
from flue_grpc.store.exporting import WRITERS, export_session, export_sessions
from flue_grpc.store.values import (
    COMPACTION_MARKER,
    Draft,
    ToolCall,
)

from .transfers import CALL, exported, lines_of


def test_lines_are_json_with_times_in_rfc_3339(filled):
    lines = [json.loads(line) for line in exported(filled, "a talk")]
    head, first, second = lines[:3]
    assert (head["type"], head["id"], head["messages"]) == ("session", "a talk", 4)
    assert head["created_at"].endswith("Z")
    assert first == {
        "type": "message",
        "session_id": "a talk",
        "role": "user",
        "created_at": first["created_at"],
        "content": "hello 数据 a\0b",
        "images": ["data:x", ""],
        "id": 1,
    }
    assert second["tool_calls"][0]["function"] == {"name": "f", "arguments": CALL.arguments}
    assert second["tool_calls"][0]["sig"] == {"x": "A=="}


def test_one_session_can_be_exported_alone(filled):
    lines = exported(filled, "sub")
    assert [json.loads(line).get("session_id", "head") for line in lines] == ["head", "sub"]
    with pytest.raises(SessionNotFoundError):
        exported(filled, "unknown")


def test_an_export_is_in_the_order_of_ids_and_misses_none(filled, monkeypatch):
    monkeypatch.setattr(exporting, "_SESSION_IDS", 1)
    parts = export_sessions(filled._database.readers, WRITERS["jsonl"], pytest.fail)
    seen = [next(parts)]
    # Touched meanwhile, so that every list would have missed it.
    filled.update_session("sub", "subagent: touched")
    seen = [json.loads(line) for line in lines_of([*seen, *parts])]
    assert [line["id"] for line in seen if line["type"] == "session"] == ["a talk", "empty", "sub"]


class Meanwhile:
    """A format that does something while a session is read."""

    def __init__(self, act):
        self._acts = [act]
        self._format = WRITERS["jsonl"]

    def begin(self, header):
        return self._format.begin(header)

    def message(self, message):
        if self._acts:
            self._acts.pop()()
        return self._format.message(message)


def test_an_export_has_the_messages_of_its_beginning(filled):
    writer = Meanwhile(lambda: filled.append_message("a talk", Draft("user", "later")))
    lines = lines_of(export_session(filled._database.readers, writer, "a talk"))
    assert json.loads(lines[0])["messages"] == 4 == len(lines) - 1


def test_a_session_deleted_while_it_is_exported_is_left_out_whole_and_told(filled, monkeypatch):
    monkeypatch.setattr(limits, "READ_BATCH_ROWS", 1)
    writer, gone = Meanwhile(lambda: filled.delete_session("a talk")), []
    lines = map(
        json.loads, lines_of(export_sessions(filled._database.readers, writer, gone.append))
    )
    assert [line.get("session_id", line["id"]) for line in lines] == ["empty", "sub", "sub"]
    assert gone == ["a talk"]


def test_a_session_deleted_and_made_anew_while_it_is_exported_is_left_out(filled, monkeypatch):
    monkeypatch.setattr(limits, "READ_BATCH_ROWS", 1)

    def make_anew():
        filled.delete_session("a talk")
        filled.create_session("a talk", "another")
        filled.append_message("a talk", Draft("user", "of the other"))

    with pytest.raises(SessionNotFoundError):
        list(export_session(filled._database.readers, Meanwhile(make_anew), "a talk"))


def test_a_large_session_is_exported_in_parts(filled, monkeypatch):
    monkeypatch.setattr(limits, "EXPORT_SPOOL_BYTES", 100)
    monkeypatch.setattr(limits, "EXPORT_PART_BYTES", 64)
    parts = list(export_session(filled._database.readers, WRITERS["jsonl"], "a talk"))
    assert max(map(len, parts)) == 64
    assert len(lines_of(parts)) == 5


def test_markdown_is_for_people(filled):
    text = b"".join(exported(filled, "a talk", "markdown")).decode()
    assert text.startswith("# Title with two lines\n\n- Session: `a talk`\n- Created: 20")
    assert "## user · 20" in text
    assert "_2 image(s)_" in text
    assert "## assistant · openai · 20" in text
    assert "**Tool call** `f` `c1`\n\n```json\n" + CALL.arguments + "\n```" in text
    assert "````\nout```put\n````" in text
    assert f"## system · {COMPACTION_MARKER} · " in text
    everything = b"".join(exported(filled, "", "markdown"))
    assert [everything.count(b"\n# "), everything.count(b"\n## ")] == [2, 5]


def test_nothing_of_markdown_acts_on_a_terminal(filled):
    name = "no`\u202e"
    evil = "a\x1b]0;PWNED\x07b\x1b[2Jc\u202ed\x9b5m\re"
    call = ToolCall(f"i{evil}", "function", f"f{evil}`", f'{{"a":"{evil}```"}}')
    filled.create_session(name, f"title{evil}")
    filled.append_message(name, Draft("tool", f"out{evil}``\x1b[m`"))
    filled.append_message(
        name, Draft("assistant", f"said{evil}", f"p{evil}", (call,), name=f"n{evil}")
    )
    text = b"".join(exported(filled, name, "markdown")).decode()
    assert re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", text) == []
    assert text.startswith("# titleabc\ufffdd e\n\n- Session: `` no`\ufffd ``\n")
    assert "````\noutabc\ufffdd\u240de```\n````\n" in text
    assert "\n## assistant · nabc\ufffdd e · pabc\ufffdd e · 20" in text
    assert "**Tool call** `` fabc\ufffdd e` `` `iabc\ufffdd e`\n\n````json\n" in text
