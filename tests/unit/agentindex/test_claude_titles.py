from __future__ import annotations

from itertools import permutations

import pytest

from flue_grpc.agentindex.adapters import _claude_titles
from flue_grpc.limits import PENDING_SUMMARIES, REMEMBERED_UUIDS
from tests.unit.agentindex.reading import Reading

PROMPT = {"type": "user", "uuid": "u-1", "message": {"content": "prompt"}}
SUMMARY = {"type": "summary", "summary": "summary", "leafUuid": "u-9"}
AI = {"type": "ai-title", "aiTitle": "ai"}
AGENT = {"type": "agent-name", "agentName": "agent"}
CUSTOM = {"type": "custom-title", "customTitle": "custom"}


def title(*lines):
    reading = Reading("claude", *lines)
    reading.store()
    return reading.summary.title


@pytest.mark.parametrize("count", range(1, 6))
def test_the_best_kind_of_title_wins_in_any_order(count):
    kinds = [PROMPT, SUMMARY, AI, AGENT, CUSTOM][:count]
    names = ["prompt", "summary", "ai", "agent", "custom"]
    assert {title(*lines) for lines in permutations(kinds)} == {names[count - 1]}


@pytest.mark.parametrize(
    ("kind", "key"),
    [("custom-title", "customTitle"), ("agent-name", "agentName"), ("ai-title", "aiTitle")],
)
def test_the_last_title_of_a_kind_wins_and_an_empty_one_takes_none_away(kind, key):
    values = ["first", "last \x1b[1mone\x1b[0m\nsecond line", "", " \n ", "\x1b[0m", None, 5]
    assert title(PROMPT, *({"type": kind, key: value} for value in values)) == "last one"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n \n  a \t b\u2028c \nd", "a b c"),
        ("x" * 300, "x" * 200),
        ("\U0001f600" * 201, "\U0001f600" * 200),
        ("a\x07b\x00c", "ab\ufffdc"),
    ],
)
def test_a_title_is_one_short_line(text, expected):
    assert title({"type": "custom-title", "customTitle": text}) == expected
    assert title({"type": "user", "message": {"content": text}}) == expected


def rename(name, kind="user"):
    text = f"<command-name>/rename</command-name><command-args>{name}</command-args>"
    body = {"content": text} if kind == "system" else {"message": {"content": text}}
    return {"type": kind} | body


@pytest.mark.parametrize("kind", ["user", "system"])
def test_a_rename_is_a_title_that_a_person_gave(kind):
    assert title(CUSTOM, rename("renamed", kind)) == "renamed"
    assert title(rename("renamed", kind), CUSTOM) == "custom"
    assert title(AI, rename("", kind)) == "ai"
    assert title(AI, rename("x", kind) | {"isSidechain": True}) == "ai"


def about(uuid, text):
    return {"type": "summary", "summary": text, "leafUuid": uuid}


def has(uuid):
    return {"type": "assistant", "uuid": uuid}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([about("x", "first"), about("y", "second")], "first"),
        ([about("x", "first"), about("u", "own"), has("u")], "own"),
        ([has("u"), about("x", "first"), about("u", "own")], "own"),
        ([about("u", "one"), about("v", "two"), has("v"), has("u")], "two"),
        ([about("u", "one"), has("u"), about("v", "two"), has("v")], "two"),
        ([has("u"), has("v"), about("v", "one"), about("u", "two")], "two"),
        ([about("u", "one"), about("u", "two"), has("u")], "two"),
        ([about("u", ""), about("x", "first"), has("u")], "first"),
        ([about(None, "first"), {"type": "mode"}, about("", "second")], "first"),
    ],
)
def test_the_last_summary_of_this_file_beats_the_first_of_any(lines, expected):
    assert title(PROMPT, *lines) == expected


def test_uuids_are_remembered_far_back_but_not_without_bound(monkeypatch):
    monkeypatch.setattr(_claude_titles, "REMEMBERED_UUIDS", 128)
    lines = [has(f"u-{number}") for number in range(300)]
    assert title(*lines, about("x", "first"), about("u-200", "own")) == "own"
    assert title(*lines, about("x", "first"), about("u-1", "lost")) == "first"
    reading = Reading("claude", *lines)
    assert len(reading.state.titles.marks) == 4 * 128
    assert REMEMBERED_UUIDS == 8192


def test_pending_summaries_are_bounded():
    lines = [about(f"u-{number}", f"t{number}") for number in range(PENDING_SUMMARIES + 10)]
    reading = Reading("claude", *lines, has("u-3"))
    assert len(reading.state.titles.pending) == PENDING_SUMMARIES
    assert reading.summary.title == "t0"
    assert title(*lines, has("u-20")) == "t20"


def test_a_better_title_frees_what_summaries_needed():
    reading = Reading("claude", about("u", "s"), *(has(f"u-{n}") for n in range(100)), AI, has("u"))
    titles = reading.state.titles
    assert (titles.marks, titles.fresh, titles.pending) == (b"", [], {})
