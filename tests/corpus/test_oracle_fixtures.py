"""The hand-written transcripts against the oracle, as they are and damaged at will."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpus.second_reading import expected_of, fields_of, read, said_of, source_of
from tests.unit.agentindex.reading import Reading

FIXTURES = sorted((Path(__file__).resolve().parents[1] / "fixtures").glob("*/*.jsonl"))
# What the two readings may tell apart in a damaged file: a label that is cut, and the
# second of two equal keys, which stays in the text of a call.
LABELS = {"title", "git_branch", "tool_version", "models"}
SPLICES = [
    b"}{", b"null", b"true", b"5", b'"x"', b"[]", b"{}", b"\\ud83d", b"\\u0000", b"\0", b"\r",
    b"\xff", b"\xe2\x80\xa8", b"-1", b"1e999", b'"', b"\\", b"1.5", b"9" * 20, b'"12"', b"\x01",
    b"<system-reminder>", b"</system-reminder>", b'"isSidechain":true,', b'"isMeta":true,',
    b"NaN", b"\\u003c", b"\\/", b"[" * 3000, b"\n", b"\n\n",
]  # fmt: skip
VALUE = re.compile(rb':("(?:[^"\\]|\\.)*"|[0-9.]+|null|true|false)')


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_fixtures_are_read_alike(path):
    reading = read(path.parent.name, path.read_bytes())
    reading.check_laws()
    fields, said = expected_of(path.parent.name, reading.data, reading.source)
    assert fields_of(reading.summary) == fields
    assert list(map(said_of, reading.messages)) == said


@st.composite
def damaged(draw):
    """Return a tool, a sound file, and the file after some mishaps."""
    path = draw(st.sampled_from(FIXTURES))
    sound = path.read_bytes()
    lines = sound.split(b"\n")
    for _ in range(draw(st.integers(1, 4))):
        number = draw(st.integers(0, len(lines) - 1))
        lines[number] = draw(mishaps(lines[number]))
    return path.parent.name, sound, b"\n".join(lines)


def mishaps(line: bytes):
    places = st.integers(0, len(line))
    spots = [match.span(1) for match in VALUE.finditer(line)] or [(0, 0)]
    splices = st.sampled_from(SPLICES)
    return st.one_of(
        st.builds(
            lambda at, byte: line[:at] + bytes([byte]) + line[at + 1 :], places, st.integers(0, 255)
        ),
        st.builds(lambda at, splice: line[:at] + splice + line[at:], places, splices),
        st.builds(
            lambda spot, splice: line[: spot[0]] + splice + line[spot[1] :],
            st.sampled_from(spots),
            splices,
        ),
        st.builds(lambda at, size: line[:at] + line[at + size :], places, st.integers(1, 40)),
        places.map(lambda at: line[:at]),
        st.just(line + line),
        st.just(b"\0\0" + line + b"\0\r"),
    )


@settings(max_examples=200, deadline=None)
@given(damaged())
def test_damage_costs_what_it_must_and_nothing_more(case):
    tool, sound, data = case
    reading = Reading(tool, source=source_of(tool, sound, ""))
    reading.feed(data)
    reading.check_laws()
    expected = expected_of(tool, data, reading.source)
    if expected is None or reading.summary is None:
        assert (expected is None) == (reading.summary is None)
        return
    fields, said = expected
    found = fields_of(reading.summary)
    assert {k: v for k, v in found.items() if k not in LABELS} == {
        k: v for k, v in fields.items() if k not in LABELS
    }
    shown = list(map(said_of, reading.messages))
    for one in (*shown, *said):
        one.model = one.model[:256]
        if one.kind.startswith("tool_"):
            one.text = ""
    assert shown == said
