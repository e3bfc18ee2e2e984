"""One line may cost no more than what is looked at of it, whatever it holds (behaviour B3)."""

from __future__ import annotations

import gc
import json
import tracemalloc
from random import Random

import pytest

from flue_grpc import limits
from flue_grpc.agentindex import json_repair
from flue_grpc.agentindex.adapters import _records
from flue_grpc.agentindex.adapters._json_values import items_of, members_of
from flue_grpc.agentindex.json_repair import whole_objects
from flue_grpc.agentindex.pages import read_line
from flue_grpc.errors import CancelledError
from tests.unit.agentindex import wild_transcripts as wild
from tests.unit.agentindex.notes import located, note
from tests.unit.agentindex.page_reading import read
from tests.unit.agentindex.reading import Reading, as_bytes
from tests.unit.agentindex.test_damage import TOOLS, prompt, start

SIZE = 2 * limits.MIB
UNITS = {
    "numbers": b"0,",
    "objects": b"{},",
    "strings": b'"",',
    "texts": b'{"type":"text","text":"a"},',
    "without commas": b"{}",
    "strings without commas": b'""',
    "nested": b"[{}],",
}
each_tool = pytest.mark.parametrize("tool", TOOLS)
each_unit = pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)


def hostile(tool, unit, members=b""):
    """Return a line whose content is very many values, as ``unit`` separates them."""
    values = (unit * (SIZE // len(unit))).removesuffix(b",")
    line = as_bytes(prompt(tool, "CONTENT"))[:-1]
    place = b'"CONTENT"' if tool == "claude" else line[line.index(b"[") : line.index(b"]") + 1]
    return line.replace(place, b"[" + values + members + b"]")


def peak_of(work):
    gc.collect()
    tracemalloc.start()
    try:
        result = work()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


@each_tool
@each_unit
def test_memory_is_that_of_the_line_not_of_its_values(tool, unit):
    line = hostile(tool, unit)
    reading = Reading(tool, start(tool))
    peak, _ = peak_of(lambda: reading.feed(line + b"\n"))
    assert peak < 6 * len(line)
    peak, _ = peak_of(lambda: reading.messages)
    assert peak < 6 * len(line)


@each_tool
@each_unit
def test_what_is_counted_of_such_a_line_is_what_the_pages_show(tool, unit):
    reading = Reading(tool, start(tool), hostile(tool, unit), prompt(tool, "kept"))
    reading.check_laws()
    assert reading.texts[-1] == "kept"
    assert reading.texts.count("a") == (limits.LINE_MESSAGES if unit == UNITS["texts"] else 0)


@each_tool
def test_of_a_list_only_the_first_blocks_are_looked_at_however_the_line_is_read(tool, monkeypatch):
    line = prompt(tool, "x")
    holder = line["payload"] if tool == "codex" else line["message"]
    holder["content"] = [{"type": "odd"}] * (limits.LINE_BLOCKS - 1)
    holder["content"] += prompt("pi", "seen")["message"]["content"] * 2
    seen = []
    for size in (limits.LARGE_LINE_BYTES, 0):
        monkeypatch.setattr(_records, "LARGE_LINE_BYTES", size)
        monkeypatch.setattr(_records, "LARGE_LINE_COMMAS", size)
        reading = Reading(tool, start(tool), line)
        reading.check_laws()
        seen.append(reading.texts[-1:])
        assert reading.texts.count("seen") == 1
    assert seen == [["seen"], ["seen"]]


@each_tool
@pytest.mark.parametrize("seed", range(6))
def test_a_line_read_member_by_member_says_what_it_says_in_one_go(tool, seed, monkeypatch):
    data = wild.transcript(tool, Random(seed))
    readings = []
    for size in (limits.LARGE_LINE_BYTES, -1):
        monkeypatch.setattr(_records, "LARGE_LINE_BYTES", size)
        monkeypatch.setattr(_records, "LARGE_LINE_COMMAS", size)
        reading = Reading(tool, start(tool))
        reading.feed(data)
        readings.append((reading.summary, reading.usage, reading.messages))
    assert readings[0] == readings[1]


def test_values_that_nobody_asks_for_are_not_made():
    members = b",".join(b'"m%d":0' % number for number in range(200_000))
    peak, found = peak_of(lambda: members_of(b"{" + members + b',"a":5}', ("a", "b")))
    assert ({name: bytes(value) for name, value in found.items()}, peak < 3 * len(members)) == (
        {"a": b"5"},
        True,
    )
    peak, items = peak_of(lambda: items_of(b"[" + b"0," * 500_000 + b"0]"))
    assert (len(items), peak < 3 * limits.MIB) == (limits.LINE_BLOCKS, True)
    assert [bytes(item) for item in items_of(b"[" + b"0," * 40_000 + b"0]")[:2]] == [b"0", b"0"]


def test_repair_takes_a_bounded_number_of_steps(monkeypatch):
    monkeypatch.setattr(json_repair, "REPAIR_STEPS", 23)
    broken = b'{"a":"\t","b":[{},{},{}]}'
    assert [json.loads(data)["a"] for data in whole_objects(broken * 3)] == ["\t", "\t"]
    assert list(whole_objects(b'{"a":"' + b"\t" * 23 + b'"}')) == []
    assert list(whole_objects(b'{"a":"' + b"\\ud800" * 23 + b'"}')) == []
    sound = b'{"b":[' + b"{}," * 23 + b"0]}"
    assert list(whole_objects(sound + sound + b"x")) == [sound, sound], "the decoder splits these"


@pytest.mark.parametrize("unit", [b"{}", b'""', b"{},01,"])
def test_damage_that_cannot_be_mended_costs_no_look_at_brackets(unit, monkeypatch):
    monkeypatch.setattr(json_repair, "_object_end", pytest.fail)
    assert list(whole_objects(b'{"a":1} {"a":[' + unit * 50 + b"]}")) == [b'{"a":1}']


class Ends:
    """A call that is called off after some questions."""

    def __init__(self, questions):
        self.left = questions

    def check(self):
        self.left -= 1
        if self.left < 0:
            raise CancelledError("nobody waits any more")


def test_a_call_that_ended_parses_no_further_line(tmp_path):
    path = tmp_path.resolve() / "n.jsonl"
    path.write_bytes((note("a") + b"\n") * 50)
    found = located(path)
    with pytest.raises(CancelledError):
        read(found, cancel=Ends(10))
    assert found.adapter.parsed < 10
    found = located(path)
    with pytest.raises(CancelledError):
        read_line(found, len(note("a")) + 1, "", Ends(2))
    assert found.adapter.parsed == 0
