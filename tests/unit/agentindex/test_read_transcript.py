from __future__ import annotations

from pathlib import Path

import pytest

from flue_grpc.agentindex import pages
from flue_grpc.cancel import NEVER
from flue_grpc.errors import MessageNotFoundError
from tests.unit.agentindex.notes import located, note
from tests.unit.agentindex.page_reading import BOTH_WAYS, stream


@pytest.fixture
def write(tmp_path):
    path = tmp_path / "n.jsonl"

    def write(data):
        path.write_bytes(data)
        return located(path)

    return write


def test_a_stream_starts_small_and_grows(write):
    found = write((note("x") + b"\n") * 1000)
    sizes = [len(page.messages) for page in stream(found)]
    assert sizes == [10, 20, 40, 80, 160, 320, 370]


def test_a_stream_aims_at_64_kib_of_text(write):
    found = write((note("x" * 10_000) + b"\n") * 30)
    assert [len(page.messages) for page in stream(found)] == [6, 6, 6, 6, 6]


@BOTH_WAYS
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7])
def test_a_stream_stops_before_the_line_that_would_pass_its_limit(write, direction, limit):
    found = write((note("a", "b") + b"\n") * 8)
    pages_read = stream(found, direction=direction, limit=limit)
    assert sum(len(page.messages) for page in pages_read) == max(2, limit // 2 * 2)


def test_a_limit_that_the_first_line_passes_ends_the_stream(write):
    found = write(note(*"abcdefghijkl") + b"\n" + note("m") + b"\n")
    (page,) = stream(found, limit=3)
    assert (len(page.messages), page.eof) == (12, False)


@BOTH_WAYS
def test_a_stream_of_nothing_is_one_page(write, direction):
    (page,) = stream(write(b""), direction=direction)
    assert (page.messages, page.next, page.eof) == ((), 0, True)


def test_what_was_written_since_is_read_from_the_last_next(tmp_path):
    path = tmp_path / "n.jsonl"
    path.write_bytes(note("a", model="m") + b"\n")
    found = located(path)
    page = stream(found)[-1]
    (nothing,) = stream(found, offset=page.next, revision=page.revision)
    assert (nothing.messages, nothing.next, nothing.eof) == ((), page.next, True)
    for written in ([note("b"), b"\n"], [note("c")[:5]], [note("c")[5:] + b"\n" + note("d")]):
        with path.open("ab") as file:
            file.write(b"".join(written))
    (page,) = stream(found, offset=page.next, revision=page.revision)
    assert [(m.text, m.model) for m in page.messages] == [("b", "m"), ("c", "m"), ("d", "m")]
    assert page.next == path.stat().st_size


def open_files():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_closed_stream_leaves_no_file_open(write):
    found = write((note("x") + b"\n") * 100)
    before = open_files()
    pages_read = pages.read_transcript(found, None, "forward", 0, "", NEVER)
    next(pages_read)
    assert open_files() == before + 1
    pages_read.close()
    assert open_files() == before


def test_a_message_comes_whole_in_pieces(write):
    text = "é" * 100_000 + "x" * 100_000
    found = write(note("a") + b"\n" + note("b", text) + b"\n")
    offset = len(note("a")) + 1
    pieces = list(pages.read_message(found, offset, 1, found.summary.revision, NEVER))
    assert "".join(pieces) == text
    assert [len(piece) for piece in pieces] == [65536, 65536, 65536, 3392]


def test_an_empty_message_is_one_empty_piece(write):
    assert list(pages.read_message(write(note("") + b"\n"), 0, 0, "", NEVER)) == [""]


def test_a_message_of_the_unterminated_last_line_is_there(write):
    assert list(pages.read_message(write(note("a", "b")), 0, 1, "", NEVER)) == ["b"]


@pytest.mark.parametrize(("offset", "index"), [(0, 1), (3, 0), (15, 0), (16, 0), (17, 0), (400, 0)])
def test_a_message_that_is_not_there_is_not_found(write, offset, index):
    found = write(note("a") + b"\n\n" + note("b")[:-1])
    assert found.summary.file_size == 31
    with pytest.raises(MessageNotFoundError):
        pages.read_message(found, offset, index, "", NEVER)


def test_a_line_is_read_with_whole_texts_and_the_model_before_it(write):
    text = "x" * 100_000
    found = write(note(model="m") + b"\n" + note(text, "b") + b"\n")
    first, second = pages.read_line(found, len(note(model="m")) + 1, "", NEVER)
    assert (first.text, first.model, second.index) == (text, "m", 1)
