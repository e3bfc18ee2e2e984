"""The holes of a sparse file say nothing, and are not read."""

from __future__ import annotations

import errno
import os

import pytest

from flue_grpc.agentindex import lines, sweep
from flue_grpc.agentindex.discovery import discover
from flue_grpc.agentindex.line_blocks import LineBlocks
from flue_grpc.agentindex.lines import behind_hole, read_lines
from flue_grpc.agentindex.opening import open_transcript
from flue_grpc.agentindex.transcript_file import TranscriptFile
from flue_grpc.cancel import NEVER
from flue_grpc.limits import MIB
from tests.unit.agentindex.test_usage import Shelf

GIB = 1024 * MIB


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "t"
    path.write_bytes(b"")
    os.truncate(path, 2 * GIB)
    if path.stat().st_blocks * 512 > MIB:
        pytest.skip("the file system has no sparse files")
    return path


@pytest.fixture
def read(monkeypatch):
    """The bytes that were read."""
    read = []
    pread, preadv = os.pread, os.preadv

    def reading(fd, size, position):
        read.append(len(data := pread(fd, size, position)))
        return data

    def reading_into(fd, views, position):
        read.append(count := preadv(fd, views, position))
        return count

    monkeypatch.setattr(os, "pread", reading)
    monkeypatch.setattr(os, "preadv", reading_into)
    return read


def put(path, *pieces):
    with path.open("r+b") as file:
        for offset, data in pieces:
            file.seek(offset)
            file.write(data)


def blocks_of(path):
    with path.open("rb") as file:
        blocks = LineBlocks(file.fileno(), 0, 2 * GIB, bytearray(64 * 1024), MIB)
        found = [(offset, bytes(view[: ends[-1]]).lstrip(b"\0")) for view, offset, ends in blocks]
    return found, blocks


def test_a_hole_within_a_line_is_not_read(path, read):
    put(path, (0, b'{"a":1}\n{'), (GIB, b'}\n{"b":2}\n'))
    found, blocks = blocks_of(path)
    assert found == [(0, b'{"a":1}'), (GIB + 2, b'{"b":2}')]
    assert (blocks.offset, blocks.end, blocks.tail) == (GIB + 10, 2 * GIB, b"")
    assert sum(read) < 8 * MIB
    read.clear()
    with path.open("rb") as file:
        taken = list(read_lines(file.fileno(), 0, 2 * GIB, MIB))
    assert [(line.offset, line.data, line.end, line.terminated) for line in taken] == [
        (0, b'{"a":1}', 8, True),
        (8, b"", GIB + 2, True),
        (GIB + 2, b'{"b":2}', GIB + 10, True),
        (GIB + 10, b"", 2 * GIB, False),
    ]
    assert sum(read) < 8 * MIB


def test_the_bounds_of_a_line_are_found_across_a_hole(path, read):
    put(path, (0, b'{"a":1}\n{'), (GIB, b'}\n{"b":2}\n{'))
    with open_transcript(str(path), str(path.parent)) as opened:
        file = TranscriptFile(opened, NEVER)
        assert file.line_end(8) == GIB + 2
        assert file.line_start(GIB + 1) == 8
        assert file.line_start(GIB + 2) == 8
        assert file.line_end(GIB + 10) is None
        assert file.line_start(2 * GIB) == GIB + 10
        assert file.size == 2 * GIB
        assert file.bytes_read == sum(read) < 8 * MIB


def test_one_that_is_cut_meanwhile_ends_there(path):
    with path.open("rb") as file:
        os.truncate(path, 5 * MIB)
        assert behind_hole(file.fileno(), 4 * MIB, 2 * GIB) == 5 * MIB
        assert behind_hole(file.fileno(), 6 * MIB, 2 * GIB) == 6 * MIB
    _, blocks = blocks_of(path)
    assert (blocks.offset, blocks.end, blocks.tail) == (0, 5 * MIB, b"")


def test_where_holes_are_not_told_the_file_is_read(path, monkeypatch):
    def refusing(*_):
        raise OSError(errno.EINVAL, "Invalid argument")

    put(path, (MIB, b"x"))
    with path.open("rb") as file:
        assert behind_hole(file.fileno(), 4096, 2 * GIB) == MIB
        assert behind_hole(file.fileno(), 4096, 5000) == 5000
        monkeypatch.setattr(os, "lseek", refusing)
        assert behind_hole(file.fileno(), 4096, 2 * GIB) == 4096
        monkeypatch.setattr(lines, "_SEEK_DATA", None)
        assert behind_hole(file.fileno(), 4096, 2 * GIB) == 4096


def test_large_files_come_last_the_smallest_first(tmp_path, monkeypatch):
    shelf = Shelf(tmp_path)
    monkeypatch.setattr(sweep, "SWEEP_COMMIT_BYTES", 100)
    for number, size in enumerate((150, 9, 120, 9)):
        written = shelf.home.write(f"logs/a/{number}.jsonl", b"x" * size)
        os.utime(written, (9 - number, 9 - number))
    seen = discover(shelf.home.roots, {})
    found = list(sweep.batches(seen.dirty, shelf.local._intake, lambda _: None))
    taken = [[entry.record.source.id for entry in batch.entries] for batch in found]
    assert taken == [["1", "3"], ["2"], ["0"]]
    shelf.close()
