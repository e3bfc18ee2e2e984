from __future__ import annotations

import pytest

from flue_grpc.agentindex.adapters.base import Context
from tests.unit.agentindex.reading import Reading
from tests.unit.agentindex.rollout import EIGHT, event, item, message, meta, turn

ENVIRONMENT = "<environment_context>\n<cwd>/env</cwd>\n</environment_context>"
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}


def said(*lines):
    reading = Reading("codex", *lines)
    reading.check_laws()
    return reading.said


USER_EVENT = event("user_message", 1, message="from the event", images=[])
AGENT_EVENT = event("agent_message", 2, message="answer")


def test_events_stand_in_for_messages_that_are_nowhere():
    reading = Reading(
        "codex", meta(), turn("m-1"), USER_EVENT, AGENT_EVENT, item("function_call", 3, name="f")
    )
    reading.check_laws()
    assert reading.said == [
        ("user", "text", "from the event"),
        ("assistant", "text", "answer"),
        ("assistant", "tool_call", ""),
    ]
    summary = reading.summary
    assert (summary.message_count, summary.prompt_count, summary.tool_call_count) == (3, 1, 1)
    assert (summary.started_at, summary.ended_at) == (EIGHT + 10**6, EIGHT + 3 * 10**6)
    assert reading.messages[1].model == "m-1"
    assert [usage.model for usage in reading.usage] == ["", "m-1", "m-1"]
    assert reading.adapter.context(reading.state) == Context("m-1", mirror=True)


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_one_message_makes_events_a_mirror_again(role):
    reading = Reading(
        "codex", meta(), USER_EVENT, AGENT_EVENT, message(role, "native", at=5), AGENT_EVENT
    )
    reading.check_laws()
    assert reading.texts == ["native"]
    assert reading.summary.started_at == EIGHT + 5 * 10**6
    assert [(u.ts, u.message_count) for u in reading.usage] == [
        (EIGHT + 10**6, 1),
        (EIGHT + 2 * 10**6, 1),
        (EIGHT + 10**6, -1),
        (EIGHT + 2 * 10**6, -1),
        (EIGHT + 5 * 10**6, 1),
    ]


def test_developer_messages_leave_the_events_in_place():
    reading = Reading("codex", message("developer", "x"), USER_EVENT)
    assert reading.texts == ["x", "from the event"]
    reading.check_laws()


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"message": "a", "kind": "plain"}, [("user", "a")]),
        ({"message": "a", "kind": "user_instructions"}, [("system", "a")]),
        ({"message": ENVIRONMENT}, [("system", ENVIRONMENT)]),
        ({"message": "", "images": ["data:x"]}, [("user", "[image]")]),
        ({"message": " ", "local_images": ["/a.png"]}, [("user", "[image]")]),
        ({"message": "", "images": []}, []),
        ({"message": None}, []),
    ],
)
def test_events_that_stand_in_are_sorted_like_messages(members, expected):
    assert [(r, t) for r, _, t in said(event("user_message", **members))] == expected


@pytest.mark.parametrize(
    ("lines", "prompt"),
    [
        ([message("user", "block"), event("user_message", message="event")], "event"),
        ([message("user", "block", at=1)], "block"),
        ([message("user", ENVIRONMENT), message("user", "late")], "late"),
        (
            [event("user_message", message="x", kind="environment_context"), message("user", "b")],
            "b",
        ),
        ([event("user_message", message=ENVIRONMENT), event("user_message", message="e")], "e"),
        ([event("user_message", message="# Ctx\n## My request for Codex:\n fix ")], "fix"),
        ([message("user", "# Ctx " + "x" * 5000 + "\n## My request for Codex:\n fix ")], "fix"),
        ([event("user_message", message="", images=["x"]), message("user", "b")], "[image]"),
        ([message("user", IMAGE)], "[image]"),
        ([message("user", IMAGE, "what?")], "what?"),
        ([event("thread_goal_updated", goal={"objective": " ship it "})], "ship it"),
        ([event("user_message", message="a\0" + "\u00e4" * 5000)], "a\ufffd" + "\u00e4" * 2046),
        ([], ""),
    ],
)
def test_the_first_prompt(lines, prompt):
    reading = Reading("codex", meta(), *lines)
    assert reading.summary.first_prompt == prompt
    reading.check_laws()


def test_the_title_is_the_name_of_the_thread():
    names = [event("thread_name_updated", thread_name=name) for name in ("one", "two\nx", "", None)]
    assert Reading("codex", message("user", "hi"), *names).summary.title == "two"
