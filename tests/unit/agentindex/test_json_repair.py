from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.agentindex.json_repair import is_object, whole_end, whole_objects
from flue_grpc.limits import LINE_OBJECTS

SOUND = b'{"a":"x","b":[1,{"c":null}]}'


def objects(line: bytes) -> list[dict]:
    return [json.loads(data) for data in whole_objects(line)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (SOUND, [{"a": "x", "b": [1, {"c": None}]}]),
        (b'{"a":1}{"b":2}', [{"a": 1}, {"b": 2}]),
        (b' {"a":1} \t{"b":2}\r', [{"a": 1}, {"b": 2}]),
        (b'\xef\xbb\xbf{"a":1}', [{"a": 1}]),
        (b'\0\0\0{"a":1}\0\0', [{"a": 1}]),
        (b'{"a":1}\0\0{"b":2}', [{"a": 1}, {"b": 2}]),
        (b'{"a":"x\ty\x01\x00z"}', [{"a": "x\ty\x01\0z"}]),
        (b'{"a":"\\ud83c"}', [{"a": "\ufffd"}]),
        (b'{"a":"\\udcb2x"}', [{"a": "\ufffdx"}]),
        (b'{"a":"\\ud83d\\ude00"}', [{"a": "\U0001f600"}]),
        (b'{"a":"\\ud83d\\ude00\\ude00"}', [{"a": "\U0001f600\ufffd"}]),
        (b'{"a":"\\\\ud83c"}', [{"a": "\\ud83c"}]),
        (b'{"a":"\xe6\x87 "}', [{"a": "\ufffd "}]),
        (b'{"a":"\xe2\x80\xa8\xc2\x85"}', [{"a": "\u2028\x85"}]),
        (b'{"a":"}{\\"}"}{"b":2}', [{"a": '}{"}'}, {"b": 2}]),
        (b'{"a":1}{"b":', [{"a": 1}]),
        (b'{"a":1}, {"b":2}', [{"a": 1}]),
        (b'{"a":1}x', [{"a": 1}]),
    ],
)
def test_whole_objects_before_the_first_damage_are_read(line, expected):
    assert objects(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b" \t\r",
        b"\0" * 500,
        b"[1,2]",
        b'"text"',
        b"5",
        b'{"a":',
        b'{"a":1',
        b'x{"a":1}',
        b'{"type":"pr-link","prNu{"type":"user"}',
        b'{"a":"\\x"}',
        b'{"a":"\\\x01"}',
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":01}',
        b"{]}",
        b"{" + b'"a":{' * 5000,
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_a_line_that_starts_with_damage_holds_nothing(line):
    assert objects(line) == []
    assert whole_end(line) == 0


def test_objects_of_one_line_are_bounded():
    assert len(objects(b"{}" * (LINE_OBJECTS + 5))) == LINE_OBJECTS


@pytest.mark.parametrize(
    ("line", "end"),
    [
        (SOUND, len(SOUND)),
        (b'{"a":1} \0', 9),
        (b'{"a":1}{"b":2}', 14),
        (b'{"a":1} {"b":', 8),
        (b'{"a":"\xff"}', 9),
        (b'{"a":"\\ud83c"}x', 14),
    ],
)
def test_whole_end_is_where_the_last_whole_object_ends(line, end):
    assert whole_end(line) == end


def test_is_object_takes_one_object_alone():
    assert is_object(SOUND)
    assert not is_object(b"[]")
    assert not is_object(SOUND + SOUND)


@settings(max_examples=100)
@given(st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=2), max_size=4))
def test_glued_objects_come_apart_whatever_they_hold(values):
    line = b"".join(json.dumps(value).encode() for value in values)
    clean = [json.loads(json.dumps(value)) for value in values]
    assert objects(line) == clean
    assert whole_end(line) == len(line)


@settings(max_examples=200)
@given(st.binary(max_size=80), st.integers(0, 80))
def test_a_beginning_that_ends_with_an_object_reads_alike(tail, cut):
    line = SOUND + b' {"d":"\\"}"}' + tail
    for size in {cut, whole_end(line)}:
        if size and whole_end(line[:size]) == size:
            found = list(whole_objects(line[:size]))
            assert list(whole_objects(line))[: len(found)] == found


def test_strings_that_never_end_cost_one_pass():
    # With a search from each quote to the end this would take minutes.
    assert whole_end(b'{"a":' + b'"\\"' * 200_000) == 0
