from __future__ import annotations

import pytest

from tests.unit.agentindex.reading import UUID, Reading
from tests.unit.agentindex.rollout import EIGHT, count, event, line, message, meta, totals, turn

PARENT = "019f0000-0000-7000-8000-000000000001"
SECOND = 10**6


def copies(at):
    """What a fork copies from its parent, written ``at`` seconds after eight."""
    return [
        meta(at, PARENT, cwd="/parent", git={"branch": "parent"}, cli_version="0.1.0"),
        turn("m-old", at=at),
        message("user", "asked before", at=at),
        event("user_message", at, message="asked before"),
        message("assistant", "answered before", at=at + 1),
        count(totals(1000, 400, 50), at=at + 2),
    ]


OWN = [
    turn("m-new", at=60),
    message("user", "asked now", at=60),
    event("user_message", 60, message="asked now"),
    message("assistant", "answered now", at=70),
    count(totals(1100, 450, 60), at=71),
]


def check_inherited(reading):
    reading.check_laws()
    summary = reading.summary
    assert reading.texts == ["asked before", "answered before", "asked now", "answered now"]
    assert (summary.first_prompt, summary.title) == ("asked now", "asked now")
    assert (summary.started_at, summary.ended_at) == (EIGHT + 60 * SECOND, EIGHT + 70 * SECOND)
    assert summary.message_count == 4
    assert reading.tokens == (50, 10, 50, 0)
    assert (summary.cwd, summary.git_branch, summary.tool_version) == (
        "/home/dev/shop",
        "main",
        "0.145.0",
    )


@pytest.mark.parametrize("at", [0, 1, -3600])
def test_copies_of_the_parent_are_shown_but_not_counted_as_own(at):
    check_inherited(Reading("codex", meta(forked_from_id=PARENT), *copies(at), *OWN))


def test_copies_with_times_of_their_own_end_where_a_line_is_late():
    parent = copies(-3600)
    parent[0] = meta(5, PARENT)
    check_inherited(Reading("codex", meta(), *parent, *OWN))


def test_copies_of_copies():
    grandparent = [meta(0, "g-1"), message("user", "asked before", at=0)]
    parent = [meta(1, PARENT), *copies(1)[4:]]
    check_inherited(Reading("codex", meta(), *grandparent, *parent, *OWN))


def test_a_copy_ends_at_more_than_two_seconds():
    lines = [meta(), meta(0, PARENT), message("user", "in", at=2), message("user", "out", at=2.001)]
    assert Reading("codex", *lines, message("user", "later", at=1)).summary.first_prompt == "out"


def test_a_line_without_a_time_ends_the_copies():
    value = message("user", "own") | {"timestamp": None}
    assert Reading("codex", meta(), meta(0, PARENT), value).summary.first_prompt == "own"


def test_a_meta_line_among_own_lines_changes_nothing():
    lines = [meta(), *OWN, meta(80, PARENT, cwd="/x"), message("user", "more", at=81)]
    reading = Reading("codex", *lines)
    reading.check_laws()
    assert reading.summary.first_prompt == "asked now"
    assert reading.tokens == (650, 60, 450, 0)
    assert reading.summary.cwd == "/home/dev/shop"


def test_a_resumed_session_repeats_its_own_meta():
    again = meta(100, git={"branch": "other"}, cli_version="0.146.0")
    reading = Reading("codex", meta(), *OWN, again, message("user", "more", at=101))
    summary = reading.summary
    assert (summary.first_prompt, summary.git_branch, summary.tool_version) == (
        "asked now",
        "other",
        "0.146.0",
    )
    assert reading.tokens == (650, 60, 450, 0)


def test_a_total_below_the_parents_counts_from_zero():
    lines = [meta(), *copies(0), *OWN[:-1], count(totals(90, 20, 9), at=71)]
    assert Reading("codex", *lines).tokens == (70, 9, 20, 0)


def test_ordinals_tell_copies_best():
    own = meta(subagent_history_start_ordinal=10, thread_source="subagent", parent_thread_id=PARENT)
    lines = [
        line | {"ordinal": ordinal}
        for ordinal, line in enumerate([*copies(30)[1:], *[line("world_state")] * 5, *OWN])
    ]
    reading = Reading("codex", own, *lines)
    check_inherited(reading)
    assert (reading.summary.is_subagent, reading.summary.parent_id) == (True, PARENT)


def test_without_ordinals_the_times_decide():
    check_inherited(Reading("codex", meta(subagent_history_start_ordinal=10), *copies(0), *OWN))


def test_nothing_is_inherited_without_a_mark():
    reading = Reading("codex", meta(forked_from_id=PARENT), *copies(0)[1:], *OWN)
    assert reading.summary.first_prompt == "asked before"
    assert reading.tokens == (650, 60, 450, 0)


SPAWN = {
    "parent_thread_id": PARENT,
    "depth": 1,
    "agent_path": "/root/fix_pay/",
    "agent_nickname": "Nick",
}


@pytest.mark.parametrize(
    ("members", "parent_id", "title"),
    [
        ({"source": {"subagent": {"thread_spawn": SPAWN}}}, PARENT, "fix_pay"),
        ({"source": {"subagent": {"thread_spawn": SPAWN | {"agent_path": None}}}}, PARENT, "Nick"),
        ({"source": {"subagent": "review"}, "forked_from_id": PARENT}, PARENT, ""),
        ({"thread_source": "subagent", "parent_thread_id": "p", "agent_path": "a/b"}, "p", "b"),
        ({"thread_source": "subagent", "parent_thread_id": "$(x)"}, "", ""),
    ],
)
def test_subagents(members, parent_id, title):
    summary = Reading("codex", meta(**members)).summary
    assert summary.is_subagent
    assert (summary.parent_id, summary.title, summary.resume) == (parent_id, title, None)
    prompt = Reading("codex", meta(**members), message("user", "do it")).summary
    assert prompt.title == "do it"


@pytest.mark.parametrize(
    "members",
    [
        {"source": "cli"},
        {"source": "exec"},
        {"source": {"subagent": None}},
        {"source": ["subagent"]},
        {"thread_source": "user"},
        {"forked_from_id": PARENT},
    ],
)
def test_ordinary_sessions(members):
    summary = Reading("codex", meta(**members)).summary
    assert (summary.is_subagent, summary.parent_id) == (False, "")
    assert summary.resume.args == ("resume", UUID)
