from __future__ import annotations

import pytest

from flue_grpc.agentindex.adapters.base import Context, Source
from flue_grpc.agentindex.values import Resume
from tests.unit.agentindex.reading import Reading, as_bytes

ID = "019b0000-0000-7000-8000-00000000000b"
THREE = 1_767_323_045_000_000  # 2026-01-02T03:04:05Z
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def stamp(at):
    return f"2026-01-02T03:{4 + (5 + at) // 60:02}:{(5 + at) % 60:02}.000Z"


def header(**members):
    value = {
        "type": "session",
        "version": 3,
        "id": ID,
        "timestamp": stamp(0),
        "cwd": "/home/dev/shop",
    }
    return value | members


def entry(kind, at=0, /, **members):
    return {"type": kind, "timestamp": stamp(at)} | members


def message(role, content=None, at=0, /, **members):
    return entry("message", at, message={"role": role, "content": content} | members)


def text(value):
    return {"type": "text", "text": value}


def usage(total=None, **counts):
    return counts | ({} if total is None else {"cost": {"input": 0, "total": total}})


def read(*lines):
    reading = Reading("pi", header(), *lines)
    reading.check_laws()
    return reading


def test_a_plain_session():
    blocks = [
        {"type": "thinking", "thinking": "Look.", "thinkingSignature": "s"},
        text("Checking."),
        {"type": "toolCall", "id": "tc1", "name": "read", "arguments": {"path": "src/pay.py"}},
    ]
    spent = usage(0.0006, input=10, output=20, cacheRead=5, cacheWrite=2, totalTokens=37)
    reading = read(
        entry("model_change", 0, provider="anthropic", modelId="claude-x"),
        message("user", [text("Why does checkout time out?"), IMAGE], 1),
        message("assistant", blocks, 4, model="claude-opus-4-5", usage=spent, stopReason="toolUse"),
        message(
            "toolResult",
            [text("timeout=1"), IMAGE],
            5,
            toolCallId="tc1",
            toolName="read",
            isError=True,
        ),
        entry("session_info", 9, name="Checkout bug"),
    )
    assert reading.said == [
        ("user", "text", "Why does checkout time out?"),
        ("user", "text", "[image]"),
        ("assistant", "thinking", "Look."),
        ("assistant", "text", "Checking."),
        ("assistant", "tool_call", '{"path":"src/pay.py"}'),
        ("user", "tool_result", "timeout=1\n[image]"),
    ]
    call, result = reading.messages[4:]
    assert (call.tool_name, call.call_id, call.model) == ("read", "tc1", "claude-opus-4-5")
    assert (result.tool_name, result.call_id, result.is_error, result.model) == (
        "read",
        "tc1",
        True,
        "",
    )
    summary = reading.summary
    assert (summary.id, summary.cwd) == (ID, "/home/dev/shop")
    assert (summary.title, summary.first_prompt) == ("Checkout bug", "Why does checkout time out?")
    assert (summary.started_at, summary.ended_at) == (THREE + 10**6, THREE + 5 * 10**6)
    assert (summary.message_count, summary.tool_call_count, summary.prompt_count) == (6, 1, 2)
    assert summary.models == ("claude-opus-4-5",)
    assert reading.tokens == (10, 20, 5, 2)
    assert summary.cost_usd == 0.0006
    assert summary.resume == Resume("pi", ("--session", ID), "/home/dev/shop")
    assert (summary.tool_version, summary.git_branch, summary.parent_id) == ("", "", "")
    assert [(u.model, u.message_count, u.cost_usd) for u in reading.usage] == [
        ("", 2, None),
        ("claude-opus-4-5", 3, 0.0006),
        ("", 1, None),
    ]


SKILL = '<skill name="x" location="/s">\nbody\n</skill>'


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (message("user", "a string"), [("user", "a string")]),
        (message("user", f"{SKILL}\n\nuse it"), [("system", SKILL), ("user", "use it")]),
        (message("user", ["bare", None, 7, text(""), text(5)]), [("user", "bare")]),
        (message("assistant", "old"), [("assistant", "old")]),
        (
            message("assistant", [IMAGE, {"type": "document"}, {"type": "other", "text": "x"}]),
            [("assistant", "[image]"), ("assistant", "[document]")],
        ),
        (message("assistant", [{"type": "thinking", "thinking": "x", "redacted": True}]), []),
        (
            message("assistant", [], stopReason="aborted", errorMessage="stopped"),
            [("system", "stopped")],
        ),
        (message("assistant", [], stopReason="error", errorMessage="boom"), [("system", "boom")]),
        (message("assistant", [], stopReason="stop", errorMessage="x"), []),
        (
            message("assistant", [text("a")], stopReason="error", errorMessage="x"),
            [("assistant", "a")],
        ),
        (message("toolResult", "plain"), [("user", "plain")]),
        (message("toolResult"), [("user", "")]),
        (
            message("bashExecution", command="git status", output="clean"),
            [("system", "$ git status\nclean")],
        ),
        (message("bashExecution", command="true", output=""), [("system", "$ true")]),
        (message("custom", "Injected", display=False), [("system", "Injected")]),
        (message("hookMessage", [text("from a hook")]), [("system", "from a hook")]),
        (message("branchSummary", summary="Tried A."), [("system", "Tried A.")]),
        (message("compactionSummary", summary="So far."), [("system", "So far.")]),
        (entry("custom_message", content="Injected context"), [("system", "Injected context")]),
        (
            entry("custom_message", content=[text("a"), text("b")]),
            [("system", "a"), ("system", "b")],
        ),
        (
            entry("compaction", summary="Found.", retainedTail=[{"role": "user", "content": "x"}]),
            [("system", "Found.")],
        ),
        (entry("branch_summary", summary="Tried A."), [("system", "Tried A.")]),
        (entry("branch_summary", summary=""), []),
        (entry("custom", data={"content": "x"}), []),
        (entry("label", label="good"), []),
        (entry("thinking_level_change", thinkingLevel="high"), []),
        (message("future", "x"), []),
        (entry("message", message=None), []),
        (entry("message", message="x"), []),
    ],
)
def test_messages_by_line_and_role(line, expected):
    assert [(role, words) for role, _, words in read(line).said] == expected


def test_tool_calls_of_every_shape():
    calls = [{"type": "toolCall", "name": "a", "arguments": "raw"}, {"type": "toolCall"}]
    assert read(message("assistant", calls)).said == [
        ("assistant", "tool_call", "raw"),
        ("assistant", "tool_call", ""),
    ]


def test_times_come_from_the_entry_or_else_from_the_message():
    lines = [
        message("user", "a", timestamp=1_767_323_046_000),
        {
            "type": "message",
            "message": {"role": "user", "content": "b", "timestamp": 1_767_323_046_000},
        },
        {
            "type": "message",
            "timestamp": "?",
            "message": {"role": "user", "content": "c", "timestamp": None},
        },
    ]
    assert [m.ts for m in read(*lines).messages] == [THREE, THREE + 10**6, None]


def test_the_model_is_that_of_the_answer_or_else_the_chosen_one():
    reading = Reading(
        "pi",
        header(modelId="m-0"),
        message("assistant", [text("a")]),
        entry("model_change", modelId="m-1"),
        message("assistant", [text("b")]),
        message("assistant", [text("c")], model="m-2"),
        entry("model_change", modelId="m-3"),
    )
    reading.check_laws()
    assert [m.model for m in reading.messages] == ["m-0", "m-1", "m-2"]
    assert reading.summary.models == ("m-0", "m-1", "m-2")
    assert reading.adapter.context(reading.state) == Context("m-3")
    page, _ = reading.adapter.messages(
        as_bytes(message("assistant", [text("d")])), 5, Context("m-3")
    )
    assert [(m.model, m.offset) for m in page] == [("m-3", 5)]


@pytest.mark.parametrize(
    ("prompts", "expected"),
    [
        ([[text("a "), IMAGE, text("b")]], "a b"),
        ([[IMAGE], "later"], "[image]"),
        ([SKILL, "typed"], "typed"),
        ([SKILL + "\n\nuse it"], "use it"),
        ([], ""),
    ],
)
def test_the_first_prompt(prompts, expected):
    assert read(*(message("user", prompt) for prompt in prompts)).summary.first_prompt == expected


def test_the_last_name_that_shows_is_the_title():
    names = [entry("session_info", name=name) for name in ("one", " two \nx", "", "  ", None, 5)]
    assert read(message("user", "hi"), *names).summary.title == "two"
    assert read(message("user", "hi"), *names[2:]).summary.title == "hi"


HELLO = message("user", "hello")


@pytest.mark.parametrize(
    "lines",
    [
        [HELLO],
        [HELLO, header()],
        [entry("custom"), header(), HELLO],
        [b'{"type":"session","id":', HELLO],
        [{"type": "title"}, HELLO],
        [b'{"type":"custom"}{"type":"title"}', header(), HELLO],
        [],
        [b"", b"junk"],
    ],
)
def test_a_file_without_a_header_is_no_session(lines):
    reading = Reading("pi", *lines)
    assert reading.summary is None
    assert reading.usage == []


@pytest.mark.parametrize(
    "before", [[], [b"", b"junk", b"[1]"], [{"type": "title", "title": "x"}], [b"\xef\xbb\xbf"]]
)
def test_the_header_is_the_first_line_that_parses(before):
    reading = Reading("pi", *before, header(), HELLO, header(id="second", cwd="/x"))
    assert (reading.summary.id, reading.summary.cwd) == (ID, "/home/dev/shop")
    assert reading.summary.message_count == 1


@pytest.mark.parametrize(
    ("header_id", "file_id", "expected"),
    [
        (ID, "x", ID),
        (None, "x", "x"),
        (5, "x", "x"),
        ("$(rm -rf ~)", "x", "x"),
        ("-c", "x", "x"),
        ("../a", "x", "x"),
        ("a\nb", "x", "x"),
        ("a" * 129, "x", "x"),
        ("a\n", "x", "x"),
        ("", "-x", None),
        (None, "a b", None),
    ],
)
def test_only_harmless_ids_are_taken(header_id, file_id, expected):
    reading = Reading("pi", header(id=header_id), HELLO, source=Source("pi", file_id))
    summary = reading.summary
    assert (summary.id if summary else None) == expected


def test_a_session_of_the_first_version():
    reading = Reading(
        "pi",
        {"type": "session", "id": ID, "timestamp": stamp(25), "provider": "x", "modelId": "m-1"},
        message("user", [text("hello")], -4),
        message(
            "assistant",
            [],
            2,
            model="gpt-test",
            usage=usage(0, input=0),
            stopReason="aborted",
            errorMessage="stopped",
        ),
        message("hookMessage", "from a hook", 60),
    )
    reading.check_laws()
    summary = reading.summary
    assert (summary.started_at, summary.ended_at) == (THREE - 4 * 10**6, THREE - 4 * 10**6)
    assert (summary.cwd, summary.resume, summary.cost_usd) == ("", None, 0.0)
    assert summary.models == ("gpt-test",)
