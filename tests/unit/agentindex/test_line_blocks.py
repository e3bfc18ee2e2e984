from __future__ import annotations

import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flue_grpc.agentindex.line_blocks import LineBlocks
from flue_grpc.agentindex.lines import split_lines


def blocks_of(path, start=0, end=None, buffer=8, cap=1000):
    fd = os.open(path, os.O_RDONLY)
    try:
        end = path.stat().st_size if end is None else end
        blocks = LineBlocks(fd, start, end, bytearray(buffer), cap)
        lines = []
        for view, offset, ends in blocks:
            begin = 0
            for line_end in ends:
                lines.append((offset + begin, bytes(view[begin:line_end])))
                begin = line_end + 1
    finally:
        os.close(fd)
    return lines, (blocks.offset, blocks.end, blocks.tail)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t"


@given(
    data=st.lists(st.sampled_from([b"\n", b"a", b"{", b"bcd", b"{" * 30])).map(b"".join),
    buffer=st.integers(1, 40),
)
@example(data=b"", buffer=1)
@example(data=b"\n\n\n{\n", buffer=3)
@settings(max_examples=100)
def test_lines_are_those_of_the_line_reader(tmp_path_factory, data, buffer):
    path = tmp_path_factory.mktemp("lines") / "t"
    path.write_bytes(data)
    expected = list(split_lines(data, 0))
    lines, (offset, end, tail) = blocks_of(path, buffer=buffer)
    assert [line for line in lines if b"{" in line[1]] == [
        (line.offset, line.data) for line in expected if line.terminated and b"{" in line.data
    ]
    assert b"".join(line + b"\n" for _, line in lines) == data[:offset]
    assert offset == data.rfind(b"\n") + 1
    assert (end, tail) == (len(data), data[offset:])


@given(
    lines=st.lists(st.integers(1, 30).map(lambda size: b"{" * size)),
    tail=st.integers(0, 30).map(lambda size: b"y" * size),
    cap=st.integers(8, 20),
)
@settings(max_examples=100)
def test_long_lines_are_stepped_over(tmp_path_factory, lines, tail, cap):
    path = tmp_path_factory.mktemp("lines") / "t"
    data = b"".join(line + b"\n" for line in lines)
    path.write_bytes(data + tail)
    found, (offset, end, rest) = blocks_of(path, buffer=8, cap=cap)
    assert [line for _, line in found] == [line for line in lines if len(line) <= cap]
    assert (offset, end) == (len(data), len(data) + len(tail))
    assert rest == (tail if len(tail) <= cap else b"")


@pytest.mark.parametrize("junk", [b"\n", b"0\n", b"\0\n", b"]}\n", b"\xef\xbb\xbf\n"])
def test_hollow_lines_in_a_row_count_as_one(path, junk):
    path.write_bytes(b"{1}\n" + junk * 1000 + b" {2}\n" + junk * 1000)
    lines, (offset, _, _) = blocks_of(path, buffer=64 * 1024)
    hollow = (junk * 1000).removesuffix(b"\n")
    assert [line for _, line in lines] == [b"{1}", hollow, b" {2}", hollow]
    assert offset == path.stat().st_size


def test_only_the_wanted_bytes_are_read(path):
    path.write_bytes(b"{one\n{two\n{three\n{four\n")
    lines, rest = blocks_of(path, start=5, end=20)
    assert lines == [(5, b"{two"), (10, b"{three")]
    assert rest == (17, 20, b"{fo")


def test_a_file_that_was_cut_ends_early(path):
    path.write_bytes(b"one\ntw")
    lines, rest = blocks_of(path, end=100)
    assert lines == [(0, b"one")]
    assert rest == (4, 6, b"tw")


def test_memory_is_what_the_longest_line_taken_needs(path, monkeypatch):
    path.write_bytes(b"x" * 5000 + b"\n" + b"y" * 99 + b"\n" + b"z" * 5000)
    sizes = []
    monkeypatch.setattr(
        "flue_grpc.agentindex.line_blocks.bytearray",
        lambda size: sizes.append(size) or bytearray(size),
        raising=False,
    )
    lines, rest = blocks_of(path, cap=100)
    assert (lines, rest) == ([(5001, b"y" * 99)], (5101, 10101, b""))
    assert sizes == [100]


@pytest.mark.parametrize(("left", "tail"), [(30, b"x" * 30), (101, b"x" * 100), (0, b"")])
def test_a_file_cut_within_a_long_line_ends_there(path, monkeypatch, left, tail):
    path.write_bytes(b"x" * 100 + b"\n" + b"more\n")
    plain, calls = os.preadv, []

    def cutting(fd, buffers, offset):
        calls.append(offset)
        if calls.count(0) == 2:
            os.truncate(path, left)
        return plain(fd, buffers, offset)

    monkeypatch.setattr(os, "preadv", cutting)
    lines, rest = blocks_of(path)
    if left == 101:
        assert (lines, rest) == ([(0, tail)], (101, 101, b""))
    else:
        assert (lines, rest) == ([], (0, left, tail))
