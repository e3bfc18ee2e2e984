"""Lines in which no object begins: a file may have millions, and they are next to free."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc import limits
from flue_grpc.agentindex.adapters.base import Context
from flue_grpc.agentindex.line_readers import BackwardReader, OnwardReader
from flue_grpc.agentindex.lines import split_lines
from flue_grpc.agentindex.located import Checkpoints
from flue_grpc.agentindex.opening import open_transcript
from flue_grpc.agentindex.page_lines import ANY_LENGTH
from flue_grpc.agentindex.transcript_file import TranscriptFile
from flue_grpc.cancel import NEVER
from tests.unit.agentindex.notes import located, note
from tests.unit.agentindex.page_reading import BOTH_WAYS, read, stream, texts

JUNK = pytest.mark.parametrize("junk", [b"\n", b"0\n", b"x\n", b"\0\n", b"\r\n", b'"]}\n'])


@JUNK
@BOTH_WAYS
def test_a_page_of_them_parses_few_and_stays_in_its_bounds(tmp_path, junk, direction):
    path = tmp_path.resolve() / "n.jsonl"
    filler = junk * (3 * limits.MIB // len(junk))
    path.write_bytes(note("a") + b"\n" + filler + note("b") + b"\n")
    size = path.stat().st_size
    found = located(path, Checkpoints((0,), (Context(),), exact_until=size, end=size))
    offset = len(note("a")) + 1 if direction == "forward" else size - len(note("b")) - 1
    page = read(found, offset, direction)
    assert page.messages == ()
    passed = page.next - page.start if direction == "backward" else page.next - offset
    assert limits.PAGE_FILE_BYTES - limits.FIRST_READ_BYTES <= passed <= limits.PAGE_FILE_BYTES
    assert found.adapter.parsed < 200
    pages = stream(found, direction=direction)
    assert sorted(text for page in pages for text in texts(page)) == ["a", "b"]
    assert found.adapter.parsed < 500


PIECES = st.lists(st.sampled_from([b"\n", b"0\n", b"{\n", b" {}\n", b"x" * 9 + b"\n", b"{" * 9]))


@given(pieces=PIECES, most=st.integers(1, 12), allow=st.integers(1, 30))
@settings(max_examples=100, deadline=None)
def test_all_other_lines_come_one_by_one_both_ways(tmp_path_factory, pieces, most, allow):
    path = tmp_path_factory.mktemp("hollow").resolve() / "t"
    data = b"".join(pieces)
    path.write_bytes(data)
    expected = [line for line in split_lines(data, 0) if b"{" in line.data]
    with open_transcript(str(path), str(path.parent)) as opened:
        file = TranscriptFile(opened, NEVER)
        onward = taken(OnwardReader(file, 0, most), allow)
        backward = taken(BackwardReader(file, len(data), most), allow)
    for lines in (onward, backward[::-1]):
        assert [line for line in lines if line.data.count(b"{")] == expected
        assert [line.offset for line in lines[1:]] == [line.end for line in lines[:-1]]
        assert sum(line.end - line.offset for line in lines) == len(data)
        hollow = [line for line in lines if b"{" not in line.data]
        assert all(line.end - line.offset <= max(most, 10) for line in hollow)


def taken(reader, allow):
    lines = []
    while line := reader.next(allow) or reader.next(ANY_LENGTH):
        lines.append(line)
    return lines
