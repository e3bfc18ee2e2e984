from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.agentindex import lines
from flue_grpc.agentindex.lines import Line, read_lines, split_lines


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(lines, "READ_BYTES", 8)


def read(data: bytes, start: int = 0, end: int | None = None, cap: int = 1 << 20) -> list[Line]:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        stop = len(data) if end is None else end
        return list(read_lines(file.fileno(), start, stop, cap))


def by_definition(data: bytes, cap: int) -> list[Line]:
    found = []
    offset = 0
    while offset < len(data):
        newline = data.find(b"\n", offset)
        stop = len(data) if newline < 0 else newline
        end = stop + (newline >= 0)
        body = data[offset:stop] if stop - offset <= cap else b""
        found.append(Line(offset, body, end, newline >= 0))
        offset = end
    return found


def test_only_the_newline_byte_ends_a_line():
    data = b"a\rb\x0bc\x0c\x85\xe2\x80\xa8d\r\ne"
    assert read(data) == [
        Line(0, b"a\rb\x0bc\x0c\x85\xe2\x80\xa8d\r", 13, terminated=True),
        Line(13, b"e", 14, terminated=False),
    ]


def test_reading_starts_and_stops_at_the_given_bytes():
    assert read(b"ab\ncd\nef\n", start=3, end=7) == [
        Line(3, b"cd", 6, terminated=True),
        Line(6, b"e", 7, terminated=False),
    ]


def test_nothing_is_read_of_an_empty_range():
    assert read(b"abc", start=3) == []
    assert read(b"abc", start=3, end=2) == []


def test_a_line_above_the_cap_is_stepped_over_and_the_next_keeps_its_offset():
    assert read(b"a" * 11 + b"\nb\n" + b"c" * 11, cap=10) == [
        Line(0, b"", 12, terminated=True),
        Line(12, b"b", 14, terminated=True),
        Line(14, b"", 25, terminated=False),
    ]


def test_a_line_of_exactly_the_cap_is_kept():
    assert read(b"a" * 10 + b"\n", cap=10) == [Line(0, b"a" * 10, 11, terminated=True)]


def test_a_file_cut_meanwhile_ends_early():
    assert read(b"ab\nc", end=99) == [
        Line(0, b"ab", 3, terminated=True),
        Line(3, b"c", 4, terminated=False),
    ]


@pytest.mark.usefixtures("small_blocks")
def test_an_over_long_line_is_never_held(monkeypatch):
    held = []
    real = os.pread

    def pread(fd, size, position):
        held.append(size)
        return real(fd, size, position)

    monkeypatch.setattr(os, "pread", pread)
    assert read(b"x" * 1000 + b"\ny", cap=16) == [
        Line(0, b"", 1001, terminated=True),
        Line(1001, b"y", 1002, terminated=False),
    ]
    assert max(held) == 8


@pytest.mark.usefixtures("small_blocks")
@settings(max_examples=100)
@given(data=st.binary(max_size=60).map(lambda b: b.replace(b"\xff", b"\n")), cap=st.integers(0, 20))
def test_blocks_of_any_place_give_the_lines_of_the_definition(data, cap):
    assert read(data, cap=cap) == by_definition(data, cap)


@given(data=st.binary(max_size=60).map(lambda b: b.replace(b"\xff", b"\n")))
def test_split_lines_counts_from_its_offset(data):
    shifted = [
        Line(line.offset + 7, line.data, line.end + 7, line.terminated)
        for line in by_definition(data, 100)
    ]
    assert list(split_lines(data, 7, 100)) == shifted
