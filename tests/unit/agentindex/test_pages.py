from __future__ import annotations

import pytest

from flue_grpc import limits
from tests.unit.agentindex.notes import located, note
from tests.unit.agentindex.page_reading import BOTH_WAYS, places, read, texts


@pytest.fixture
def write(tmp_path):
    path = tmp_path / "n.jsonl"

    def write(data):
        path.write_bytes(data)
        return located(path)

    return write


def test_a_page_holds_whole_lines_and_says_where_it_sits(write):
    a, b, c = note("a1", "a2"), note("b1"), note("c1")
    found = write(a + b"\n" + b + b"\n" + c + b"\n")
    size = len(a) + len(b) + len(c) + 3
    page = read(found)
    assert texts(page) == ["a1", "a2", "b1", "c1"]
    assert places(page) == [(0, 0), (0, 1), (len(a) + 1, 0), (len(a) + len(b) + 2, 0)]
    assert (page.start, page.next, page.eof, page.file_size) == (0, size, True, size)
    assert page.revision == found.summary.revision


def test_forward_never_overshoots_its_limit(write):
    a = note("a1", "a2") + b"\n"
    found = write(a + note("b1", "b2") + b"\n")
    page = read(found, limit=3)
    assert texts(page) == ["a1", "a2"]
    assert (page.next, page.eof) == (len(a), False)
    assert texts(read(found, offset=page.next, limit=3)) == ["b1", "b2"]


@BOTH_WAYS
def test_a_line_above_the_limit_comes_whole_and_alone(write, direction):
    found = write(note(*"abcde") + b"\n" + note(*"fghij") + b"\n")
    expected = list("abcde") if direction == "forward" else list("fghij")
    assert texts(read(found, direction=direction, limit=1)) == expected


def test_bookkeeping_behind_the_last_message_belongs_to_the_page(write):
    head = note("a") + b"\n"
    found = write(head + b'{"x":1}\n' * 3)
    page = read(found, limit=1)
    assert (texts(page), page.eof, page.next) == (["a"], True, len(head) + 24)


def test_a_page_may_be_empty_without_being_the_end(write):
    line = b'{"x":"%s"}\n' % (b"x" * (limits.MIB - 9))
    assert len(line) == limits.MIB
    found = write(line * 3 + note("a") + b"\n")
    page = read(found)
    assert (page.messages, page.start, page.next, page.eof) == ((), 0, 2 * limits.MIB, False)
    page = read(found, offset=page.next)
    assert (texts(page), page.start, page.eof) == (["a"], 3 * limits.MIB, True)


def test_start_is_the_first_message_line_or_where_reading_began(write):
    skip = b'{"x":1}\n\n'
    a = skip + note("a") + b"\n"
    found = write(a + skip)
    assert read(found).start == len(skip)
    assert read(found, offset=len(a)).start == len(a)
    assert read(found, direction="backward").start == len(skip)
    assert read(found, offset=len(skip), direction="backward").start == 0


@BOTH_WAYS
def test_an_empty_file_is_one_empty_page(write, direction):
    page = read(write(b""), direction=direction)
    assert (page.messages, page.start, page.next, page.eof, page.file_size) == ((), 0, 0, True, 0)


def test_explicit_zero_backward_is_the_start(write):
    page = read(write(note("a") + b"\n"), offset=0, direction="backward")
    assert (page.messages, page.start, page.next, page.eof) == ((), 0, 0, False)


def test_an_offset_past_the_end_is_the_end(write):
    found = write(note("a") + b"\n")
    size = found.summary.file_size
    page = read(found, offset=size + 7)
    assert (page.messages, page.start, page.next, page.eof) == ((), size, size, True)
    page = read(found, offset=size + 7, direction="backward")
    assert (texts(page), page.start, page.next, page.eof) == (["a"], 0, size, True)


def test_forward_from_inside_a_line_moves_to_the_next(write):
    a = note("a") + b"\n"
    found = write(a + note("b") + b"\n")
    for offset in range(1, len(a) - 1):
        page = read(found, offset=offset)
        assert (texts(page), page.start) == (["b"], len(a)), offset


def test_forward_from_inside_the_last_line_waits_for_its_end(write):
    a = note("a")
    page = read(write(a), offset=3)
    assert (page.messages, page.start, page.next, page.eof) == ((), 3, 3, True)


def test_the_end_of_a_whole_object_is_a_place_to_go_on_from(write):
    a, b, c = note("a1", "a2"), note("b"), note("c")
    found = write(a + b"  " + b + c + b"\n" + note("d") + b"\n")
    page = read(found, offset=len(a))
    assert texts(page) == ["b", "c", "d"]
    assert places(page)[:2] == [(0, 2), (0, 3)]
    assert page.start == 0
    assert places(read(found, offset=len(a) + 2)) == places(page)
    assert places(read(found, offset=len(a + b) + 2))[0] == (0, 3)
    end = len(a + b + c) + 2
    assert texts(read(found, offset=end)) == ["d"]


def test_a_closing_bracket_inside_an_object_is_no_place_to_go_on_from(write):
    line = b'{"notes":["x"],"in":{"a":{}} ,"model":"m"}'
    found = write(line + b"\n" + note("b") + b"\n")
    assert texts(read(found, offset=line.index(b"}} ") + 2)) == ["b"]


def test_backward_takes_what_lies_wholly_before_the_offset(write):
    a, b = note("a") + b"\n", note("b") + b"\n"
    found = write(a + b)
    for offset in (len(a), len(a) + 1, len(a + b) - 2):
        page = read(found, offset=offset, direction="backward")
        assert (texts(page), page.start, page.next) == (["a"], 0, len(a)), offset
    page = read(found, offset=3, direction="backward")
    assert (page.messages, page.start, page.next) == ((), 0, 0)


def test_backward_from_the_end_of_a_whole_object_takes_the_line_up_to_it(write):
    a, b = note("a"), note("b")
    found = write(note("z") + b"\n" + a + b + b"\n")
    offset = len(note("z")) + 1 + len(a)
    page = read(found, offset=offset, direction="backward")
    assert (texts(page), page.next) == (["z", "a"], offset)


def test_a_fragment_is_left_for_next_time(write):
    a = note("a") + b"\n"
    found = write(a + note("b")[:-1])
    for direction in ("forward", "backward"):
        page = read(found, direction=direction)
        assert (texts(page), page.next, page.eof) == (["a"], len(a), True), direction


@pytest.mark.parametrize("blanks", [b"", b" ", b"\r", b"\0\0"])
def test_a_whole_object_is_read_and_what_is_glued_to_it_follows(tmp_path, blanks):
    path = tmp_path / "n.jsonl"
    path.write_bytes(note("a1", "a2") + blanks)
    found = located(path)
    for direction in ("forward", "backward"):
        page = read(found, direction=direction)
        assert (texts(page), page.next, page.eof) == (["a1", "a2"], page.file_size, True)
    with path.open("ab") as file:
        file.write(note("b"))
    page = read(found, offset=page.next, revision=page.revision)
    assert (texts(page), places(page), page.next) == (["b"], [(0, 2)], page.file_size)
    with path.open("ab") as file:
        file.write(b"\n" + note("c") + b"\n")
    assert texts(read(found, offset=page.next, revision=page.revision)) == ["c"]


def test_of_a_last_line_the_whole_objects_are_read_and_the_fragment_waits(tmp_path):
    path = tmp_path / "n.jsonl"
    a, b = note("a"), note("b")
    path.write_bytes(a + b[:-2])
    found = located(path)
    for direction in ("forward", "backward"):
        page = read(found, direction=direction)
        assert (texts(page), page.next, page.eof) == (["a"], len(a), True)
    page = read(found, offset=len(a))
    assert (page.messages, page.start, page.next, page.eof) == ((), len(a), len(a), True)
    path.write_bytes(a + b + b"\n")
    assert places(read(found, offset=len(a))) == [(0, 1)]


def test_texts_are_cut_at_16_kib_on_a_code_point(write):
    long = "é" * limits.PAGE_MESSAGE_TEXT_BYTES
    exact = "x" * limits.PAGE_MESSAGE_TEXT_BYTES
    first, second, third = read(write(note(long, exact, "€" + long) + b"\n")).messages
    assert (first.text, first.truncated) == ("é" * (16 * 1024 // 2), True)
    assert first.text_size == 2 * len(long)
    assert (second.text, second.truncated, second.text_size) == (exact, False, len(exact))
    assert third.text == "€" + "é" * ((16 * 1024 - 3) // 2)


def test_labels_are_cut_at_256_bytes(write):
    (message,) = read(write(note("a", model="é" * 200) + b"\n")).messages
    assert message.model == "é" * 128


def test_the_later_texts_of_one_huge_line_are_cut_to_what_is_left(write):
    found = write(note(*["x" * 16 * limits.KIB] * 1000, "beyond") + b"\n" + note("b") + b"\n")
    page = read(found, limit=200)
    sizes = [len(message.text) for message in page.messages]
    assert len(sizes) == limits.LINE_MESSAGES
    assert sum(sizes) == 3 * limits.MIB
    assert sizes[:192] == [16 * limits.KIB] * 192
    assert set(sizes[192:]) == {0}
    assert all(message.truncated for message in page.messages[192:])
    assert texts(read(found, offset=page.next)) == ["b"]


@BOTH_WAYS
def test_a_page_takes_at_most_2_mib_of_file(write, direction):
    line = note("x" * (300 * limits.KIB - 15)) + b"\n"
    assert len(line) == 300 * limits.KIB
    found = write(line * 20)
    assert len(read(found, direction=direction).messages) == 6


@BOTH_WAYS
def test_texts_of_a_page_stay_within_3_mib(write, direction):
    # Bytes that are no UTF-8 take three times their size in text.
    texts = b'","'.join([b"\xff" * 5461] * 20)
    found = write((b'{"notes":["' + texts + b'"]}\n') * 20)
    page = read(found, direction=direction, limit=200)
    assert len(page.messages) == 180
    assert sum(message.text_size for message in page.messages) == 180 * 16383


@BOTH_WAYS
def test_a_line_above_the_cap_is_stepped_over(write, monkeypatch, direction):
    for module in ("line_readers", "places"):
        monkeypatch.setattr(f"flue_grpc.agentindex.{module}.LINE_BYTES", 100)
    longest, longer = note("x" * 86), note("x" * 87)
    assert len(longest) == 100
    found = write(note("a") + b"\n" + longer + b"\n" + longest + b"\n" + note("b") + b"\n")
    assert texts(read(found, direction=direction)) == ["a", "x" * 86, "b"]


def test_a_last_line_above_the_cap_is_left_alone(write, monkeypatch):
    for module in ("line_readers", "places"):
        monkeypatch.setattr(f"flue_grpc.agentindex.{module}.LINE_BYTES", 100)
    found = write(note("a") + b"\n" + note("x" * 87))
    end = len(note("a")) + 1
    for direction in ("forward", "backward"):
        page = read(found, direction=direction)
        assert (texts(page), page.next, page.eof) == (["a"], end, True)
    page = read(found, offset=found.summary.file_size, direction="forward")
    assert (page.messages, page.eof) == ((), True)
