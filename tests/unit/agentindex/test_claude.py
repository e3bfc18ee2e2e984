from __future__ import annotations

import pytest

from flue_grpc.agentindex.adapters.base import Source
from flue_grpc.agentindex.values import Resume
from tests.unit.agentindex.reading import UUID, Reading

NINE = 1_772_355_600_000_000  # 2026-03-01T09:00:00Z


def line(kind="user", content=None, at=0, **members):
    """A line of the main chain, ``at`` seconds after nine; ``content`` is its message's."""
    value = {"type": kind, "uuid": f"u-{at}", "timestamp": f"2026-03-01T09:00:{at:02}.000Z"}
    if content is not None:
        value["message"] = {"role": kind, "content": content}
    return value | members


def system(text, at=0, **members):
    return line("system", at=at) | {"content": text} | members


def block(kind, **members):
    return {"type": kind} | members


def response(*blocks, at=1, model="claude-sonnet-4-5", **members):
    value = line("assistant", list(blocks), at, **members)
    value["message"]["model"] = model
    return value


def said(*lines):
    reading = Reading("claude", *lines)
    reading.check_laws()
    return reading.said


def test_a_plain_session():
    reading = Reading(
        "claude",
        line(
            content="Why does checkout time out?",
            cwd="/home/dev/shop",
            gitBranch="main",
            version="2.1.2",
        ),
        response(block("thinking", thinking="Look.", signature="c2ln")),
        response(block("text", text="I look."), at=2),
        response(
            block("tool_use", id="t1", name="Bash", input={"command": "rg <x>", "n": 1.50}), at=3
        ),
        line(
            content=[block("tool_result", tool_use_id="t1", content="out", is_error=True)],
            at=4,
            toolUseResult={"stdout": "out" * 1000},
            gitBranch="fix",
        ),
    )
    reading.check_laws()
    messages = reading.messages
    assert reading.said == [
        ("user", "text", "Why does checkout time out?"),
        ("assistant", "thinking", "Look."),
        ("assistant", "text", "I look."),
        ("assistant", "tool_call", '{"command":"rg <x>","n":1.5}'),
        ("user", "tool_result", "out"),
    ]
    assert [message.ts for message in messages] == [NINE + i * 10**6 for i in range(5)]
    assert [message.model for message in messages] == ["", *["claude-sonnet-4-5"] * 3, ""]
    call, result = messages[3:]
    assert (call.tool_name, call.call_id) == ("Bash", "t1")
    assert (result.tool_name, result.call_id, result.is_error) == ("", "t1", True)
    assert [message.index for message in messages] == [0] * 5
    assert messages[1].offset == reading.data.index(b"\n") + 1
    summary = reading.summary
    assert summary.id == UUID
    assert summary.tool == "claude"
    assert summary.title == summary.first_prompt == "Why does checkout time out?"
    assert (summary.started_at, summary.ended_at) == (NINE, NINE + 4 * 10**6)
    assert (summary.message_count, summary.tool_call_count, summary.prompt_count) == (5, 1, 1)
    assert summary.models == ("claude-sonnet-4-5",)
    assert summary.cost_usd is None
    assert (summary.git_branch, summary.tool_version) == ("fix", "2.1.2")
    assert summary.resume == Resume("claude", ("--resume", UUID), "/home/dev/shop")
    assert (summary.file_size, summary.updated_at, summary.revision) == (10, 20, "r")
    assert not summary.is_subagent


def test_blocks_of_a_line_have_its_offset_and_their_place():
    reading = Reading(
        "claude",
        b"",
        response(block("thinking", thinking=""), block("text", text="a"), block("text", text="b")),
    )
    assert [(m.text, m.offset, m.index) for m in reading.messages] == [("a", 1, 0), ("b", 1, 1)]


@pytest.mark.parametrize(
    ("members", "role"),
    [
        ({}, "user"),
        ({"isMeta": True}, "system"),
        ({"isCompactSummary": True}, "system"),
        ({"isVisibleInTranscriptOnly": True}, "system"),
        ({"promptSource": "system"}, "system"),
        ({"promptSource": "typed"}, "user"),
        ({"origin": {"kind": "task-notification"}}, "system"),
        ({"origin": {"kind": "coordinator"}}, "system"),
        ({"origin": {"kind": "human"}}, "user"),
        ({"origin": {}}, "user"),
        ({"origin": "x"}, "user"),
    ],
)
def test_whole_lines_are_injected_by_their_flags(members, role):
    picture = block("image", source={"type": "base64", "data": "aGk="})
    content = [block("text", text="hi"), picture, block("tool_result", content="out")]
    assert said(line(content=content, **members)) == [
        (role, "text", "hi"),
        (role, "text", "[image]"),
        ("user", "tool_result", "out"),
    ]


def test_compact_summaries_are_system_on_lines_of_the_assistant_too():
    value = response(block("text", text="So far."), block("tool_use", name="X", input={}))
    assert said(value | {"isCompactSummary": True}) == [
        ("system", "text", "So far."),
        ("assistant", "tool_call", "{}"),
    ]


def test_envelopes_and_prompts_of_one_block_are_two_messages_of_one_line():
    reading = Reading("claude", line(content="<system-reminder>r</system-reminder>\nfix it"))
    assert reading.said == [
        ("system", "text", "<system-reminder>r</system-reminder>"),
        ("user", "text", "fix it"),
    ]
    assert [(m.offset, m.index) for m in reading.messages] == [(0, 0), (0, 1)]
    assert reading.summary.first_prompt == "fix it"
    reading.check_laws()


@pytest.mark.parametrize(
    ("attachment", "expected"),
    [
        ({"type": "queued_command", "prompt": "also"}, [("user", "text", "also")]),
        (
            {"type": "queued_command", "prompt": [block("text", text="a"), block("image")]},
            [("user", "text", "a"), ("user", "text", "[image]")],
        ),
        (
            {"type": "queued_command", "prompt": "x", "commandMode": "task-notification"},
            [("system", "text", "x")],
        ),
        (
            {"type": "queued_command", "prompt": "<task-notification>x</task-notification>"},
            [("system", "text", "<task-notification>x</task-notification>")],
        ),
        ({"type": "queued_command"}, []),
        ({"type": "hook_additional_context", "content": "ctx"}, [("system", "text", "ctx")]),
        ({"type": "hook_success", "content": ["a", "", "b"]}, [("system", "text", "a\nb")]),
        ({"type": "hook_success", "content": ""}, []),
        ({"type": "hook_blocking_error", "content": {"a": 1}}, []),
        ({"type": "task_reminder", "content": "x"}, []),
        (None, []),
    ],
)
def test_attachments(attachment, expected):
    assert said(line("attachment", attachment=attachment)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (system("note", subtype="informational"), [("system", "text", "note")]),
        (system("Conversation compacted"), [("system", "text", "Conversation compacted")]),
        (line("system", subtype="turn_duration", durationMs=5), []),
        (system(""), []),
        (system(None), []),
    ],
)
def test_system_lines_speak_if_they_have_text(value, expected):
    assert said(value) == expected


def test_the_blocks_of_the_assistant():
    assert said(
        response(
            block("redacted_thinking", data="x"),
            block("server_tool_use", id="s", name="web_search", input={"query": "q"}),
            block("web_search_tool_result", tool_use_id="s", content=[block("text", text="r")]),
            block("mcp_tool_use", name="mcp__a__b", input="free text"),
            block("mcp_tool_result", content={"b": 1}),
            block("fallback"),
            block("image"),
            block("document"),
        )
    ) == [
        ("assistant", "tool_call", '{"query":"q"}'),
        ("user", "tool_result", "r"),
        ("assistant", "tool_call", "free text"),
        ("user", "tool_result", '{"b":1}'),
        ("assistant", "text", "[image]"),
        ("assistant", "text", "[document]"),
    ]


def test_content_may_be_a_string_and_a_message_may_be_missing():
    assert said(
        line("assistant", "old text"),
        {"type": "user", "content": "top level"},
        {"type": "user", "message": None, "content": "beside null"},
        {"type": "assistant", "message": "no object", "content": "beside a string"},
        {"type": "user", "message": {"role": "user"}, "content": "hidden by the message"},
    ) == [
        ("assistant", "text", "old text"),
        ("user", "text", "top level"),
        ("user", "text", "beside null"),
        ("assistant", "text", "beside a string"),
    ]


@pytest.mark.parametrize(
    "value",
    [
        {"type": "queue-operation", "operation": "enqueue", "content": "x"},
        {"type": "progress", "data": {"type": "agent_progress", "message": {"content": "x"}}},
        {"type": "file-history-snapshot", "snapshot": {"timestamp": "2027-01-01T00:00:00Z"}},
        {"type": "last-prompt", "lastPrompt": "x"},
        {"type": "tool_use", "content": "x"},
        {"type": "mode", "mode": "plan"},
        {"type": "future", "message": {"role": "user", "content": "x"}},
        {"message": {"role": "user", "content": "x"}},
    ],
)
def test_other_lines_say_nothing_and_move_no_time(value):
    reading = Reading("claude", line(content="hi"), value | {"timestamp": "2027-01-01T00:00:00Z"})
    assert reading.texts == ["hi"]
    assert reading.summary.ended_at == NINE
    reading.check_laws()


def test_only_messages_that_count_span_the_session():
    reading = Reading(
        "claude",
        system("before", at=1),
        line(content="<bash-input>ls</bash-input>", at=2),
        line(content="late", at=9),
        line(content="early", at=5),
        system("after", at=30),
    )
    summary = reading.summary
    assert (summary.started_at, summary.ended_at) == (NINE + 5 * 10**6, NINE + 9 * 10**6)
    assert summary.message_count == 2


def test_a_session_of_bookkeeping_is_indexed_but_not_listed():
    summary = Reading("claude", {"type": "mode", "mode": "x"}).summary
    assert summary is not None
    assert not summary.is_listed
    assert (summary.started_at, summary.title) == (None, "")


def test_sidechains_are_marked_and_never_give_a_prompt():
    reading = Reading(
        "claude",
        line(content="do part", isSidechain=True),
        response(block("text", text="done"), isSidechain=True),
        line(content="the real one", at=2),
    )
    assert [message.sidechain for message in reading.messages] == [True, True, False]
    summary = reading.summary
    assert (summary.first_prompt, summary.prompt_count) == ("the real one", 1)
    assert summary.message_count == 3
    reading.check_laws()


def test_synthetic_answers_are_shown_but_are_no_model():
    reading = Reading(
        "claude",
        response(block("text", text="API Error: 529"), model="<synthetic>", isApiErrorMessage=True),
        response(block("text", text="x"), model=None),
        response(block("text", text="y"), model=""),
        response(block("text", text="z"), model="m-1"),
        response(model="m-2"),
        response(block("text", text="z"), model="m-1"),
    )
    assert reading.said[0] == ("assistant", "text", "API Error: 529")
    assert reading.summary.models == ("m-1", "m-2")
    assert [usage.model for usage in reading.usage] == ["", "", "", "m-1", "m-1"]


def test_a_subagent_below_its_session():
    source = Source("claude", f"{UUID}.agent-1", UUID, is_subagent=True, folder="-home-dev-shop")
    reading = Reading(
        "claude",
        line(content="do part", isSidechain=True, cwd="/home/dev/shop", sessionId="other"),
        source=source,
    )
    summary = reading.summary
    assert (summary.id, summary.parent_id) == (f"{UUID}.agent-1", UUID)
    assert summary.is_subagent
    assert (summary.resume, summary.cwd) == (None, "/home/dev/shop")


@pytest.mark.parametrize(
    ("session_ids", "summary_id", "parent_id"),
    [
        ([None, "", "$(x)", "par-1", "par-2"], "par-1.agent-1", "par-1"),
        ([None], "agent-1", ""),
    ],
)
def test_a_flat_subagent_is_told_its_parent_by_its_lines(session_ids, summary_id, parent_id):
    source = Source("claude", "agent-1", is_subagent=True, folder="-home-dev-shop")
    lines = [line(content="x", sessionId=session_id) for session_id in session_ids]
    summary = Reading("claude", *lines, source=source).summary
    assert (summary.id, summary.parent_id, summary.resume) == (summary_id, parent_id, None)


def test_an_id_that_grows_too_long_is_not_indexed():
    source = Source("claude", "agent-" + "a" * 100, is_subagent=True)
    assert Reading("claude", line(content="x", sessionId="p" * 30), source=source).summary is None
