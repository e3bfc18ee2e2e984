"""The damage catalogue, row by row, for all three tools (formats §6).

Rows about files and directories rather than lines are tested with discovery, opening
and pages: 12 (size), 28 (rewritten), 29 (offset inside a line), 32, 33 and 35.
"""

from __future__ import annotations

import json
import tempfile

import pytest

from flue_grpc.agentindex.adapters.base import Source
from flue_grpc.agentindex.lines import read_lines
from flue_grpc.limits import LINE_MESSAGES
from tests.unit.agentindex import rollout
from tests.unit.agentindex.reading import ADAPTERS, SOURCES, Reading, as_bytes, feed_line

UUID = "019f1f1f-0000-7000-8000-00000000000a"
TOOLS = ("claude", "codex", "pi")
each_tool = pytest.mark.parametrize("tool", TOOLS)


def prompt(tool, text):
    """A line in which a person says ``text``."""
    if tool == "claude":
        return {"type": "user", "message": {"role": "user", "content": text}}
    if tool == "codex":
        return rollout.message("user", text)
    return {
        "type": "message",
        "message": {"role": "user", "content": [{"type": "text", "text": text}]},
    }


def start(tool):
    if tool == "claude":
        return {"type": "user", "cwd": "/home/dev/shop", "message": {"content": "first"}}
    if tool == "codex":
        return prompt(tool, "first")
    return {"type": "session", "id": UUID, "cwd": "/home/dev/shop"}


def texts(tool, *lines):
    """What is said on ``lines`` between two sound ones."""
    reading = Reading(tool, start(tool), *lines, prompt(tool, "last"))
    reading.check_laws()
    said = [text for text in reading.texts if text != "first"]
    assert said.pop() == "last"
    return said


def as_line(tool, text):
    return as_bytes(prompt(tool, text))[:-1]


@each_tool
@pytest.mark.parametrize("cut", [1, 20, -1, -3])
def test_row_1_and_2_a_truncated_line_costs_itself(tool, cut):
    assert texts(tool, as_line(tool, "lost")[:cut], prompt(tool, "kept")) == ["kept"]


@each_tool
def test_row_1_a_last_line_without_newline_counts_if_it_is_whole(tool):
    reading = Reading(tool, start(tool))
    before = reading.summary
    line = as_line(tool, "said")
    for size in range(len(line)):
        reading.store()
        assert feed_line(reading.adapter, reading.state, line[:size], reading.ledger) == []
        assert reading.summary == before
    added = feed_line(reading.adapter, reading.state, line, reading.ledger)
    assert [usage.message_count for usage in added] == [1]


@each_tool
def test_row_3_a_stub_with_the_next_record_glued_to_it_is_skipped(tool):
    assert texts(tool, b'{"type":"pr-link","prNu' + as_line(tool, "lost")) == []


@each_tool
def test_row_4_whole_objects_on_one_line_are_all_read(tool):
    line = as_line(tool, "a") + as_line(tool, "b") + b" " + as_line(tool, "c")
    reading = Reading(tool, start(tool), line)
    found = [(m.text, m.offset, m.index) for m in reading.messages][-3:]
    offset = reading.data.index(line)
    assert found == [("a", offset, 0), ("b", offset, 1), ("c", offset, 2)]
    reading.check_laws()
    assert texts(tool, as_line(tool, "a") + as_line(tool, "b")[:-4]) == ["a"]


@each_tool
@pytest.mark.parametrize("before", [b"\0" * 700, b"\0", b""])
@pytest.mark.parametrize("after", [b"\0" * 200, b""])
def test_row_5_nuls_around_a_line_are_nothing(tool, before, after):
    assert texts(tool, before + as_line(tool, "said") + after, b"\0" * 300) == ["said"]


@each_tool
@pytest.mark.parametrize(
    ("escape", "text"),
    [
        (b"\\ud83c", "\ufffd"),
        (b"\\udcb2", "\ufffd"),
        (b"\\ud83d\\ude00", "\U0001f600"),
        (b"\\ude00\\ud83d", "\ufffd\ufffd"),
        (b"\\u0000", "\ufffd"),
    ],
)
def test_row_6_broken_escapes_become_replacement_characters(tool, escape, text):
    line = as_line(tool, "a MARK b").replace(b"MARK", escape)
    assert texts(tool, line) == [f"a {text} b"]


@each_tool
def test_row_7_bytes_that_are_not_utf_8_are_replaced(tool):
    line = as_line(tool, "a MARK b").replace(b"MARK", b"\xe6\x87 ")
    assert texts(tool, line) == ["a \ufffd  b"]


@each_tool
def test_row_8_a_bom_is_no_text_but_has_bytes(tool):
    reading = Reading(tool, b"\xef\xbb\xbf" + as_bytes(start(tool))[:-1], prompt(tool, "x"))
    message = reading.messages[-1]
    assert (message.text, message.offset) == ("x", reading.data.index(b"\n") + 1)
    assert reading.messages[0].offset in {0, message.offset}
    reading.check_laws()


@each_tool
def test_row_9_carriage_returns_are_blank(tool):
    assert texts(tool, as_line(tool, "said") + b"\r", b"\r") == ["said"]


@each_tool
@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\t", "\x01"])
def test_row_10_odd_characters_stay_in_their_line(tool, char):
    line = as_line(tool, "a MARK b").replace(b"MARK", char.encode())
    assert texts(tool, line) == [f"a {char} b"]


@each_tool
def test_row_11_lines_above_the_cap_are_stepped_over_and_pictures_are_never_text(tool):
    data = as_bytes(start(tool), as_line(tool, "x" * 5000), prompt(tool, "kept"))
    adapter = ADAPTERS[tool]
    state, ledger = adapter.start(SOURCES[tool]), Reading(tool).ledger
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        for line in read_lines(file.fileno(), 0, len(data), cap=1000):
            feed_line(adapter, state, line.data, ledger)
    assert state.tally.message_count == (1 if tool == "pi" else 2)
    picture = {"claude": "image", "codex": "input_image", "pi": "image"}[tool]
    line = as_line(tool, "x").replace(
        b'"x"', b'[{"type": "%s", "data": "aGk="}]' % picture.encode()
    )
    if tool != "claude":
        line = as_line(tool, "x").replace(
            b'"type": "%s"' % b"text", b'"type": "image", "data": "aGk="'
        )
        line = line.replace(b'"type": "input_text"', b'"type": "input_image", "image_url": "aGk="')
    assert texts(tool, line) == ["[image]"]


@each_tool
@pytest.mark.parametrize("data", [b"", b"\n\n \n", b'{"type":"x"}\n'])
def test_row_13_files_that_say_nothing_are_not_listed(tool, data):
    reading = Reading(tool)
    reading.feed(data)
    assert reading.summary is None or not reading.summary.is_listed
    assert reading.usage == []


WRONG = [None, "text", 5, 1.5, True, [], {}, [None], [5], ["block"], [[]], [{}], [{"type": 5}]]


@each_tool
@pytest.mark.parametrize("value", WRONG, ids=repr)
@pytest.mark.parametrize("key", ["message", "content", "payload", "timestamp", "type"])
def test_row_14_wrong_types_cost_at_most_their_line(tool, key, value):
    lines = [prompt(tool, "x") | {key: value}]
    inner = json.loads(json.dumps(prompt(tool, "x")))
    for holder in ("message", "payload"):
        if holder in inner and key != holder:
            inner[holder][key] = value
            lines.append(inner)
    said = texts(tool, *lines)
    assert set(said) <= {"x", "block", "text"}
    if key == "timestamp":
        assert said == ["x"] * len(lines)


@pytest.mark.parametrize(
    ("content", "text"),
    [("ABSENT", ""), (None, ""), (5, "5"), ({"a": [1]}, '{"a":[1]}'), (True, "true"), ([], "")],
)
def test_row_15_results_of_tools_with_odd_content(content, text):
    block = {"type": "tool_result", "tool_use_id": "t"}
    block |= {} if content == "ABSENT" else {"content": content}
    assert texts("claude", {"type": "user", "message": {"content": [block]}}) == [text]


@each_tool
@pytest.mark.parametrize("value", [None, "x", -1, 1.5, "12", 10**30, [], {}, True], ids=repr)
def test_row_16_odd_usage_never_fails(tool, value):
    lines = {
        "claude": {"type": "assistant", "message": {"id": "m", "usage": {"input_tokens": value}}},
        "codex": rollout.count({"input_tokens": value}),
        "pi": {"type": "message", "message": {"role": "assistant", "usage": {"input": value}}},
    }
    whole = {"claude": "usage", "codex": "total_token_usage", "pi": "usage"}[tool]
    odd = as_bytes(lines[tool])[:-1]
    odder = json.loads(odd)
    holder = odder["payload"]["info"] if tool == "codex" else odder["message"]
    holder[whole] = value
    reading = Reading(tool, start(tool), odd, odder)
    reading.check_laws()
    assert reading.tokens == (12 if value == "12" else 0, 0, 0, 0)


@each_tool
@pytest.mark.parametrize("model", [None, "", 5, [], {}], ids=repr)
def test_row_17_odd_models_are_none(tool, model):
    lines = {
        "claude": {"type": "assistant", "message": {"model": model, "content": "x"}},
        "codex": rollout.turn(model),
        "pi": {"type": "message", "message": {"role": "assistant", "model": model, "content": "x"}},
    }
    reading = Reading(tool, start(tool), lines[tool])
    assert reading.summary.models == ()


def test_row_18_to_20_repeated_lines_count_once_for_tokens_and_each_time_as_messages():
    line = {
        "type": "assistant",
        "uuid": "u",
        "message": {"id": "m", "content": "x", "usage": {"output_tokens": 5}},
    }
    reading = Reading("claude", line, line, line)
    assert (reading.texts, reading.tokens) == (["x"] * 3, (0, 5, 0, 0))


@pytest.mark.parametrize("tool", ["claude", "pi"])
def test_row_21_and_22_parents_are_never_followed(tool):
    loops = [{"uuid": "a", "parentUuid": "a"}, {"id": "a", "parentId": "a"}, {"parentUuid": 5}]
    said = texts(tool, *(prompt(tool, str(n)) | loop for n, loop in enumerate(loops)))
    assert said == ["0", "1", "2"]


def test_row_25_the_first_meta_line_wins():
    lines = [rollout.meta(cwd="/a"), prompt("codex", "x"), rollout.meta(9, "other", cwd="/b")]
    summary = Reading("codex", *lines).summary
    assert (summary.id, summary.cwd, summary.first_prompt) == (UUID, "/a", "x")


@each_tool
def test_row_26_a_late_first_prompt_is_found(tool):
    reading = Reading(
        tool, *([{"type": "session"}] if tool == "pi" else []), *[{"type": "x"}] * 500
    )
    reading.feed(as_bytes(prompt(tool, "late")))
    assert reading.summary.first_prompt == "late"


@pytest.mark.parametrize("line", [b"", b"{", b'{"type":"session"'])
def test_row_27_a_pi_file_with_a_broken_header_is_no_session(line):
    assert Reading("pi", line, prompt("pi", "x")).summary is None


@each_tool
@pytest.mark.parametrize(
    "value",
    [
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b"NaN",
        b"-Infinity",
    ],
    ids=["open", "deep", "objects", "NaN", "Infinity"],
)
def test_row_30_what_no_reader_can_hold_costs_its_line(tool, value):
    line = as_line(tool, "lost")[:-1] + b',"x":' + value + b"}"
    assert texts(tool, line, value) == []


@each_tool
def test_row_30_a_number_of_5000_digits_is_ignored(tool):
    line = (
        as_line(tool, "said")[:-1] + b',"ordinal":' + b"9" * 5000 + b',"uuid":' + b"9" * 5000 + b"}"
    )
    assert texts(tool, line) == ["said"]


@pytest.mark.parametrize(
    "bad", ["-c", "../x", "a/b", "a\0b", "a\nb", "$(x)", "", "\u00e9", "a" * 129]
)
def test_row_31_hostile_ids_reach_no_command(bad):
    reading = Reading("pi", {"type": "session", "id": bad, "cwd": "/x"}, prompt("pi", "x"))
    assert reading.summary.resume.args == ("--session", SOURCES["pi"].id)
    for tool in TOOLS:
        assert Reading(tool, {"type": "session"}, source=Source(tool, bad)).summary is None


@each_tool
def test_row_34_escape_sequences_stay_in_text_and_leave_titles(tool):
    reading = Reading(
        tool, *([start(tool)] if tool == "pi" else []), prompt(tool, "\x1b[31mred\x1b[0m")
    )
    assert reading.texts == ["\x1b[31mred\x1b[0m"]
    assert reading.summary.title == "red"


@each_tool
def test_row_36_quoted_transcripts_are_prose(tool):
    quoted = (
        "look: <system-reminder>x</system-reminder> <environment_context>y</environment_context>"
    )
    reading = Reading(tool, *([start(tool)] if tool == "pi" else []), prompt(tool, quoted))
    assert reading.said == [("user", "text", quoted)]
    assert texts(tool, prompt(tool, as_line(tool, "inner").decode())) == [
        as_line(tool, "inner").decode()
    ]


@pytest.mark.parametrize("tool", ["claude", "pi"])
def test_a_line_has_a_bounded_number_of_messages(tool):
    blocks = [{"type": "text", "text": "x"}] * (LINE_MESSAGES + 5)
    line = prompt(tool, "x")
    line["message"]["content"] = blocks
    many = as_bytes(line)[:-1]
    reading = Reading(tool, start(tool), many, many + as_line(tool, "y"), as_line(tool, "y") + many)
    reading.check_laws()
    assert len(reading.messages) == 3 * LINE_MESSAGES + (tool == "claude")
