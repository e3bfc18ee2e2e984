from __future__ import annotations

import pytest

from flue_grpc.agentindex.adapters.base import Context, Source
from flue_grpc.agentindex.values import Resume
from tests.unit.agentindex.reading import UUID, Reading, as_bytes
from tests.unit.agentindex.rollout import (
    EIGHT,
    count,
    event,
    item,
    line,
    message,
    meta,
    totals,
    turn,
)

ENVIRONMENT = "<environment_context>\n<cwd>/env</cwd>\n</environment_context>"
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}


def said(*lines):
    reading = Reading("codex", *lines)
    reading.check_laws()
    return reading.said


def test_a_plain_session():
    reading = Reading(
        "codex",
        meta(),
        event("task_started", turn_id="t-1"),
        turn("gpt-5.5", at=1),
        message("developer", "<permissions instructions>\nx\n</permissions instructions>", at=1),
        message(
            "user",
            "# AGENTS.md instructions for /x\n<INSTRUCTIONS>\n</INSTRUCTIONS>",
            ENVIRONMENT,
            at=1,
        ),
        message("user", "Why does checkout time out?", at=2),
        event("user_message", 2, message="Why does checkout time out?", images=[]),
        item(
            "reasoning",
            3,
            summary=[{"type": "summary_text", "text": "Search."}],
            encrypted_content="g",
        ),
        item("function_call", 4, name="exec_command", arguments='{"cmd": "rg x"}', call_id="c1"),
        item("function_call_output", 5, call_id="c1", output="src/pay.py:9"),
        item("custom_tool_call", 6, name="apply_patch", input="*** Begin Patch", call_id="c2"),
        item("custom_tool_call_output", 7, call_id="c2", output="Success", name="apply_patch"),
        turn("gpt-5.6", at=8),
        message("assistant", "It is 1 s.", at=9),
        event("agent_message", 9, message="It is 1 s."),
        count(totals(20570, 3456, 531, 512), at=10),
        event("task_complete", 11, last_agent_message="It is 1 s."),
    )
    reading.check_laws()
    assert reading.said == [
        ("system", "text", "<permissions instructions>\nx\n</permissions instructions>"),
        ("system", "text", "# AGENTS.md instructions for /x\n<INSTRUCTIONS>\n</INSTRUCTIONS>"),
        ("system", "text", ENVIRONMENT),
        ("user", "text", "Why does checkout time out?"),
        ("assistant", "thinking", "Search."),
        ("assistant", "tool_call", '{"cmd": "rg x"}'),
        ("user", "tool_result", "src/pay.py:9"),
        ("assistant", "tool_call", "*** Begin Patch"),
        ("user", "tool_result", "Success"),
        ("assistant", "text", "It is 1 s."),
    ]
    messages = reading.messages
    assert [m.model for m in messages if m.role == "assistant"] == [*["gpt-5.5"] * 3, "gpt-5.6"]
    assert {m.model for m in messages if m.role != "assistant"} == {""}
    assert [m.tool_name for m in messages[5:9]] == [
        "exec_command",
        "",
        "apply_patch",
        "apply_patch",
    ]
    assert [m.call_id for m in messages[5:9]] == ["c1", "c1", "c2", "c2"]
    summary = reading.summary
    assert summary.id == UUID
    assert summary.title == summary.first_prompt == "Why does checkout time out?"
    assert (summary.started_at, summary.ended_at) == (EIGHT + 2 * 10**6, EIGHT + 9 * 10**6)
    assert (summary.message_count, summary.tool_call_count, summary.prompt_count) == (7, 2, 1)
    assert summary.models == ("gpt-5.5", "gpt-5.6")
    assert reading.tokens == (20570 - 3456 - 512, 531, 3456, 512)
    assert (summary.git_branch, summary.tool_version) == ("main", "0.145.0")
    assert summary.resume == Resume("codex", ("resume", UUID), "/home/dev/shop")
    assert (summary.cost_usd, summary.parent_id, summary.is_subagent) == (None, "", False)
    usage = reading.usage[-1]
    assert (usage.ts, usage.model, usage.message_count) == (EIGHT + 10**7, "gpt-5.6", 0)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (
            {"type": "function_call", "name": "f", "namespace": "ns", "arguments": {"b": 1}},
            ("ns.f", '{"b":1}'),
        ),
        ({"type": "function_call", "name": "f"}, ("f", "")),
        ({"type": "function_call", "arguments": "{not json"}, ("", "{not json")),
        (
            {"type": "local_shell_call", "call_id": None, "action": {"command": ["ls"]}},
            ("local_shell", '{"command":["ls"]}'),
        ),
        (
            {"type": "web_search_call", "action": {"type": "search"}},
            ("web_search", '{"type":"search"}'),
        ),
        ({"type": "web_search_call"}, ("web_search", "")),
        (
            {"type": "tool_search_call", "arguments": {"query": "x"}},
            ("tool_search", '{"query":"x"}'),
        ),
        ({"type": "image_generation_call", "result": "aGk="}, ("image_generation", "[image]")),
    ],
)
def test_tool_calls(payload, expected):
    reading = Reading("codex", line("response_item", 0, payload))
    (call,) = reading.messages
    assert (call.role, call.kind, call.tool_name, call.text) == (
        "assistant",
        "tool_call",
        *expected,
    )
    reading.check_laws()


@pytest.mark.parametrize(
    ("output", "text", "is_error"),
    [
        ("plain", "plain", False),
        (
            '{"output":"x","metadata":{"exit_code":1}}',
            '{"output":"x","metadata":{"exit_code":1}}',
            False,
        ),
        ([{"type": "input_text", "text": "a"}, IMAGE], "a\n[image]", False),
        ({"content": "wrapped", "success": True}, "wrapped", False),
        ({"content": [{"type": "input_text", "text": "a"}], "success": False}, "a", True),
        ({"other": 1.50}, '{"other":1.5}', False),
        (None, "", False),
        (7, "7", False),
    ],
)
def test_outputs_of_every_shape_are_read(output, text, is_error):
    reading = Reading("codex", item("function_call_output", output=output, call_id="c"))
    (result,) = reading.messages
    assert (result.role, result.kind, result.text) == ("user", "tool_result", text)
    assert (result.is_error, result.call_id, result.tool_name) == (is_error, "c", "")
    reading.check_laws()


def test_the_output_of_a_tool_search_names_its_tool():
    reading = Reading("codex", item("tool_search_output", tools=[{"name": "x"}], call_id="c"))
    assert [(m.tool_name, m.text) for m in reading.messages] == [("tool_search", '[{"name":"x"}]')]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (message("user", "a", IMAGE, "b"), [("user", "a"), ("user", "[image]"), ("user", "b")]),
        (message("user", "<image>", IMAGE, "</image>"), [("user", "[image]")]),
        (message("user", {"type": "input_file"}), [("user", "[document]")]),
        (message("user", f"{ENVIRONMENT}\ngo on"), [("system", ENVIRONMENT), ("user", "go on")]),
        (message("system", "x", ""), [("system", "x")]),
        (
            message(
                "assistant", {"type": "refusal", "refusal": "no"}, {"type": "text", "text": "y"}
            ),
            [("assistant", "no"), ("assistant", "y")],
        ),
        (message("tool", "x"), []),
        (item("message", role="user", content="a string"), [("user", "a string")]),
        (
            item("message", role="user", content=["a", None, 5, {"type": "other", "text": "x"}]),
            [("user", "a")],
        ),
        (item("message", content=[{"type": "input_text", "text": "x"}]), []),
        (
            item(
                "agent_message",
                author="a",
                content=[
                    {"type": "input_text", "text": "to you"},
                    {"type": "encrypted_content", "encrypted_content": "gAAAAAB"},
                ],
            ),
            [("system", "to you")],
        ),
        (
            line(
                "compacted",
                0,
                {
                    "message": "Summary.",
                    "replacement_history": [{"type": "message", "role": "user", "content": "x"}],
                },
            ),
            [("system", "Summary.")],
        ),
        (line("compacted", 0, {"message": ""}), []),
    ],
)
def test_messages_by_role_and_block(value, expected):
    assert [(role, text) for role, _, text in said(value)] == expected


@pytest.mark.parametrize(
    "value",
    [
        item("reasoning", summary=[], encrypted_content="gAAAAAB"),
        item("reasoning", summary=[{"type": "summary_text", "text": ""}], content=None),
        item("compaction", encrypted_content="x"),
        item("ghost_snapshot", ghost_commit={}),
        item("other"),
        line("world_state", 0, {"full": True}),
        line("inter_agent_communication", 0, {"message": "x"}),
        line("future", 0, {"type": "message", "role": "user", "content": "x"}),
        event("agent_reasoning", text="x"),
        event("exec_command_end", stdout="x"),
        event("turn_aborted", reason="interrupted"),
        {"record_type": "state"},
        {"timestamp": "x", "type": "response_item"},
    ],
)
def test_other_lines_say_nothing(value):
    assert said(message("user", "hi"), value) == [("user", "text", "hi")]


def test_reasoning_joins_its_summary_and_its_content():
    value = item(
        "reasoning",
        summary=[{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
        content=[{"type": "reasoning_text", "text": "c"}],
    )
    assert said(value) == [("assistant", "thinking", "a\nb\nc")]


BARE = [
    {
        "id": UUID,
        "timestamp": "2025-08-01T10:00:00.000Z",
        "instructions": None,
        "git": {"branch": "old"},
    },
    {"record_type": "state"},
    {
        "type": "message",
        "id": None,
        "role": "user",
        "content": [
            {
                "type": "input_text",
                "text": "<environment_context>\nCurrent working directory: /home/dev/old\n</environment_context>",
            }
        ],
    },
    {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Port this to Rust"}],
    },
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
    {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c1"},
    {"type": "function_call_output", "call_id": "c1", "output": '{"output":"src"}'},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
]


def test_bare_lines_of_2025():
    reading = Reading("codex", *BARE)
    reading.check_laws()
    assert [kind for _, kind, _ in reading.said] == [
        "text",
        "text",
        "thinking",
        "tool_call",
        "tool_result",
        "text",
    ]
    assert {m.ts for m in reading.messages} == {None}
    summary = reading.summary
    assert (summary.cwd, summary.first_prompt, summary.git_branch) == (
        "/home/dev/old",
        "Port this to Rust",
        "old",
    )
    assert (summary.started_at, summary.ended_at) == (None, None)
    assert (summary.models, reading.tokens) == ((), (0, 0, 0, 0))


@pytest.mark.parametrize(
    ("lines", "cwd"),
    [
        ([turn(cwd="/turn"), meta(cwd="/meta"), message("user", ENVIRONMENT)], "/meta"),
        (
            [meta(cwd=""), message("user", ENVIRONMENT), turn(cwd="/turn"), turn(cwd="/later")],
            "/turn",
        ),
        ([meta(cwd=None), message("user", ENVIRONMENT)], "/env"),
        ([meta(cwd=None), message("user", "<cwd>/quoted</cwd>")], ""),
        ([meta(cwd="/a"), meta(cwd="/b")], "/a"),
    ],
)
def test_the_directory(lines, cwd):
    summary = Reading("codex", *lines).summary
    assert summary.cwd == cwd
    assert (summary.resume is None) == (cwd == "")


def test_a_page_in_the_middle_needs_only_the_model_before_it():
    reading = Reading("codex", turn("m-1"), message("assistant", "a"), turn("m-2"))
    assert reading.adapter.context(reading.state) == Context("m-2")
    line = as_bytes(message("assistant", "b"))
    messages, after = reading.adapter.messages(line, 7, Context("m-2"))
    assert [(m.text, m.model, m.offset) for m in messages] == [("b", "m-2", 7)]
    assert after == Context("m-2")
    messages, after = reading.adapter.messages(as_bytes(turn("m-3"))[:-1] + line, 7, Context("m-2"))
    assert ([m.model for m in messages], after) == (["m-3"], Context("m-3"))


def test_a_name_that_is_no_id_is_not_indexed():
    assert Reading("codex", meta(), source=Source("codex", "-x")).summary is None
