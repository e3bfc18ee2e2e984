"""Following a transcript whose writer takes long over one line."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest

from flue_grpc import limits
from flue_grpc.agentindex import page_lines
from tests.unit.agentindex.notes import note
from tests.unit.agentindex.test_follow import Reader
from tests.unit.agentindex.work import Work

PIECE = 64 * limits.KIB
PIECES = 48
TAIL = (PIECES + 1) * PIECE


class Growing:
    """A follow that has read what there is, and a file that grows without newlines."""

    def __init__(self, path, monkeypatch):
        monkeypatch.setattr(limits, "HEARTBEAT_SECONDS", 0)
        path.write_bytes(note("a") + b"\n")
        self.path = path
        self.reader = Reader(path).read_all()
        self.judged = []
        judge = page_lines.whole_end
        monkeypatch.setattr(
            page_lines, "whole_end", lambda line: self.judged.append(len(line)) or judge(line)
        )
        self.work = Work(monkeypatch, path.parent)

    def write(self, data):
        with self.path.open("ab") as file:
            file.write(data)
        self.reader.settle()


@pytest.fixture
def growing(tmp_path, monkeypatch):
    return Growing(tmp_path.resolve() / "n.jsonl", monkeypatch)


def test_of_a_line_that_grows_only_the_new_bytes_are_read(growing):
    line = note("x" * TAIL)
    end = TAIL - PIECE
    for start in range(0, end, PIECE):
        growing.write(line[start : start + PIECE])
        mark = growing.reader.taken[-1].page
        assert (mark.messages, mark.file_size) == ((), growing.path.stat().st_size)
    small = limits.FOLLOW_TAIL_BYTES // PIECE
    assert len(set(growing.judged)) <= small + 1
    assert growing.work.read < 2 * len(line)
    growing.write(line[end:] + b"\n")
    assert [len(text) for text in growing.reader.texts] == [1, limits.PAGE_MESSAGE_TEXT_BYTES]
    growing.write(note("b") + b"\n")
    assert growing.reader.texts[-1] == "b"


def test_pieces_that_end_as_objects_are_judged_less_and_less_often(growing):
    growing.write(b'{"notes":[')
    for _ in range(PIECES):
        growing.write(b'"' + b"y" * (PIECE - 6) + b'",{}')
    large = [size for size in growing.judged if size > limits.FOLLOW_TAIL_BYTES]
    assert 1 <= len(large) <= 12
    assert all(later >= 1.25 * sooner for sooner, later in pairwise(large))
    assert sum(growing.judged) < 6 * TAIL


@pytest.mark.parametrize("size", [100, limits.FOLLOW_TAIL_BYTES - 100, TAIL])
def test_a_whole_object_without_its_newline_is_given_at_once(growing, size):
    growing.write(note("x" * size))
    assert [len(text) for text in growing.reader.texts] == [
        1,
        min(size, limits.PAGE_MESSAGE_TEXT_BYTES),
    ]


def test_a_large_one_that_grew_little_at_last_is_given_when_it_is_quiet(growing, monkeypatch):
    line = note("x" * TAIL + "}")
    growing.write(line.removesuffix(b'"]}'))
    growing.write(b'"]}')
    assert growing.reader.texts == ["a"]
    monkeypatch.setattr(limits, "FOLLOW_QUIET_SECONDS", 0)
    growing.reader.settle()
    assert [len(text) for text in growing.reader.texts] == [1, limits.PAGE_MESSAGE_TEXT_BYTES]
    judged = len(growing.judged)
    growing.reader.settle()
    assert len(growing.judged) == judged


def test_a_large_tail_that_is_cut_and_written_anew_is_read_again(growing):
    growing.write(note("x" * TAIL)[:-2])
    os.truncate(growing.path, len(note("a")) + 1)
    growing.write(note("new") + b"\n")
    assert growing.reader.texts == ["a", "new"]


def test_objects_glued_to_a_large_fragment_come_with_its_newline(growing):
    growing.write(b'{"notes":["' + b"x" * TAIL)
    growing.write(b'"]}' + note("glued"))
    growing.write(b"\n")
    assert [len(text) for text in growing.reader.texts] == [1, limits.PAGE_MESSAGE_TEXT_BYTES, 5]
