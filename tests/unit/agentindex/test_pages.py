from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc import limits
from flue_grpc.agentindex import pages
from flue_grpc.agentindex.adapters.base import Context
from flue_grpc.agentindex.located import Checkpoints
from flue_grpc.agentindex.transcript_file import TranscriptFile
from flue_grpc.cancel import NEVER
from flue_grpc.errors import (
    CancelledError,
    CursorGoneError,
    MessageNotFoundError,
    TranscriptNotFoundError,
)
from tests.unit.agentindex.notes import located, note, whole_parse

BOTH_WAYS = pytest.mark.parametrize("direction", ["forward", "backward"])


@pytest.fixture
def write(tmp_path):
    path = tmp_path / "n.jsonl"

    def write(data):
        path.write_bytes(data)
        return located(path)

    return write


def read(found, offset=None, direction="forward", limit=100, revision="", cancel=NEVER):
    return pages.read_page(found, offset, direction, limit, revision, cancel)


def stream(found, offset=None, direction="forward", limit=0, revision="", cancel=NEVER):
    return list(pages.read_transcript(found, offset, direction, limit, revision, cancel))


def texts(page):
    return [message.text for message in page.messages]


def places(page):
    return [(message.offset, message.index) for message in page.messages]


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


# --- places inside a line ---


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


# --- the unterminated last line ---


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


# --- bounds ---


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


# --- the model in force ---


@BOTH_WAYS
@pytest.mark.parametrize("known", [1, 2, 3])
def test_messages_carry_the_model_wherever_the_page_begins(tmp_path, direction, known):
    path = tmp_path / "n.jsonl"
    lines = [note("a", model="m1"), note("b"), note("c"), note("d", model="m2"), note("e")]
    lines = [line + b"\n" for line in lines]
    path.write_bytes(b"".join(lines))
    changes = (0, len(lines[0]), len(b"".join(lines[:4])))
    # The index knows the first of the changes; behind them lines have to be read again.
    checkpoints = Checkpoints(
        changes[:known],
        (Context(), Context("m1"), Context("m2"))[:known],
        exact_until=changes[known - 1],
        end=changes[known - 1],
    )
    found = located(path, checkpoints)
    models, offset = [], None
    for _ in lines:
        page = read(found, offset=offset, direction=direction, limit=1)
        models += [(message.text, message.model) for message in page.messages]
        offset = page.next if direction == "forward" else page.start
    expected = [("a", "m1"), ("b", "m1"), ("c", "m1"), ("d", "m2"), ("e", "m2")]
    assert sorted(models) == expected


def test_the_rest_of_a_line_carries_the_model_named_before_it(write):
    a, b = note("a", model="m1"), note("b")
    (message,) = read(write(a + b + b"\n"), offset=len(a)).messages
    assert (message.text, message.model) == ("b", "m1")


def test_checkpoints_of_a_file_that_was_replaced_are_not_used(tmp_path):
    path = tmp_path / "n.jsonl"
    path.write_bytes(note("a", model="old") + b"\n" + note("b") + b"\n")
    found = located(path)
    path.write_bytes(note("c", model="new") + b"\n" + note("d") + b"\n")
    (message,) = read(found, offset=len(note("c", model="new")) + 1).messages
    assert (message.text, message.model) == ("d", "new")


# --- revisions ---


def test_the_revision_outlives_appends(tmp_path):
    path = tmp_path / "n.jsonl"
    path.write_bytes(note("a"))
    found = located(path)
    first = read(found)
    with path.open("ab") as file:
        file.write(b"\n" + note("b") + b"\n")
    second = read(found, offset=first.next, revision=first.revision)
    assert texts(second) == ["b"]
    assert texts(read(found, offset=second.start, revision=second.revision)) == ["b"]


@pytest.mark.parametrize("data", [note("other") + b"\n", b""])
def test_a_replaced_file_ends_the_cursor(tmp_path, data):
    path = tmp_path / "n.jsonl"
    path.write_bytes(note("a") + b"\n")
    found = located(path)
    path.write_bytes(data)
    for call in (read, stream):
        for direction in ("forward", "backward"):
            with pytest.raises(CursorGoneError):
                call(found, offset=0, direction=direction, revision=found.summary.revision)
    with pytest.raises(CursorGoneError):
        pages.read_message(found, 0, 0, found.summary.revision, NEVER)


def test_a_cut_file_ends_the_cursor_only_with_a_revision(tmp_path):
    path = tmp_path / "n.jsonl"
    path.write_bytes(note("a") + b"\n" + note("b") + b"\n")
    found = located(path)
    page = read(found)
    os.truncate(path, len(note("a")) + 1)
    with pytest.raises(CursorGoneError):
        read(found, offset=page.next, revision=page.revision)
    assert read(found, offset=page.next).next == len(note("a")) + 1
    assert texts(read(found, offset=len(note("a")) + 1, direction="backward")) == ["a"]


def test_a_vanished_file_is_not_found(tmp_path):
    path = tmp_path / "n.jsonl"
    path.write_bytes(note("a") + b"\n")
    found = located(path)
    path.unlink()
    for call in (read, stream):
        with pytest.raises(TranscriptNotFoundError):
            call(found)
    with pytest.raises(TranscriptNotFoundError):
        pages.read_message(found, 0, 0, "", NEVER)


def test_an_unreadable_file_is_not_found(write, monkeypatch):
    found = write(note("a") + b"\n")

    def pread(*_):
        raise OSError(5, "broken disk")

    monkeypatch.setattr("os.pread", pread)
    with pytest.raises(TranscriptNotFoundError):
        read(found)


@BOTH_WAYS
def test_a_file_cut_while_it_is_read_gives_what_is_left(tmp_path, monkeypatch, direction):
    path = tmp_path / "n.jsonl"
    line = note("x" * 1000) + b"\n"
    path.write_bytes(line * 1000)
    found = located(path)
    pread = os.pread
    calls = []

    def cutting(fd, size, offset):
        calls.append(offset)
        if len(calls) == 4:
            os.truncate(path, 3 * len(line) + 10)
        return pread(fd, size, offset)

    monkeypatch.setattr("os.pread", cutting)
    for page in stream(found, direction=direction):
        assert all(message.text == "x" * 1000 for message in page.messages)
        assert page.next <= page.file_size


# --- work ---


@BOTH_WAYS
def test_the_work_of_a_page_does_not_depend_on_the_size_of_the_file(
    tmp_path, monkeypatch, direction
):
    work = []
    for count in (2000, 20_000):
        path = tmp_path / f"{count}.jsonl"
        path.write_bytes((note("x" * 1000, model="m") + b"\n") * count)
        found = located(path)
        read_bytes = []
        original = TranscriptFile.read

        def read_counted(self, offset, size, original=original, read_bytes=read_bytes):
            data = original(self, offset, size)
            read_bytes.append(len(data))
            return data

        monkeypatch.setattr(TranscriptFile, "read", read_counted)
        before = found.adapter.parsed
        offset = None if direction == "backward" else 1000 * (len(note("x" * 1000, model="m")) + 1)
        assert len(read(found, offset=offset, direction=direction, limit=100).messages) == 100
        work.append((sum(read_bytes), found.adapter.parsed - before))
        monkeypatch.setattr(TranscriptFile, "read", original)
    assert work[0] == work[1]
    assert work[0][0] < 500_000


def test_a_giant_line_is_not_read_to_see_that_it_does_not_fit(write, monkeypatch):
    found = write(note("a") + b"\n" + note("x" * 20 * limits.MIB) + b"\n" + note("b") + b"\n")
    read_bytes = []
    original = TranscriptFile.read

    def read_counted(self, offset, size):
        data = original(self, offset, size)
        read_bytes.append(len(data))
        return data

    monkeypatch.setattr(TranscriptFile, "read", read_counted)
    for direction in ("forward", "backward"):
        read_bytes.clear()
        assert len(texts(read(found, direction=direction))) == 1
        assert sum(read_bytes) <= 4 * limits.MIB


def test_cancellation_is_seen_while_a_giant_line_is_stepped_over(write):
    class AfterSomeReads:
        def __init__(self):
            self.asked = 0

        def is_cancelled(self):
            return self.asked > 5

        def check(self):
            self.asked += 1
            if self.is_cancelled():
                raise CancelledError("nobody waits")

    found = write(note("a") + b"\n" + b"x" * 24 * limits.MIB + b"\n" + note("a") + b"\n")
    for direction in ("forward", "backward"):
        cancel = AfterSomeReads()
        with pytest.raises(CancelledError):
            read(found, offset=12 * limits.MIB - 1, direction=direction, cancel=cancel)
        assert cancel.asked == 6


# --- ReadTranscript ---


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


def test_a_closed_stream_leaves_no_file_open(write):
    found = write((note("x") + b"\n") * 100)
    before = os.listdir("/proc/self/fd")
    pages_read = pages.read_transcript(found, None, "forward", 0, "", NEVER)
    next(pages_read)
    assert len(os.listdir("/proc/self/fd")) == len(before) + 1
    pages_read.close()
    assert os.listdir("/proc/self/fd") == before


# --- ReadMessage ---


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


# --- the law ---

TEXTS = st.one_of(st.text(max_size=8), st.sampled_from(["x" * 40, "é" * 9]))
NOTES = st.builds(
    lambda texts, model: note(*texts, model=model),
    st.lists(TEXTS, max_size=4),
    st.sampled_from([None, None, "m1", "m2"]),
)
DAMAGE = st.sampled_from([b"", b" ", b"\r", b"\0\0", b"junk", b'{"notes":[', b"\xff\xfe", b"{}"])
LINES = st.lists(st.one_of(NOTES, DAMAGE), min_size=0, max_size=3).map(b"".join)
FILES = st.tuples(st.lists(LINES, max_size=12), st.one_of(st.just(b""), LINES)).map(
    lambda parts: b"".join(line + b"\n" for line in parts[0]) + parts[1]
)


def shown(messages):
    return [(m.offset, m.index, m.role, m.model, m.text) for m in messages]


def read_all(found, direction, limits_of_pages):
    """Read page by page, with these limits in turn; every page makes progress."""
    messages, offset, turn = [], None, 0
    while True:
        page = read(found, offset, direction, limits_of_pages[turn % len(limits_of_pages)])
        turn += 1
        assert turn < 200
        if direction == "forward":
            messages += page.messages
            assert page.eof or page.next > (offset or 0)
            if page.eof:
                return messages
            offset = page.next
        else:
            messages[:0] = page.messages
            assert page.start < page.file_size if offset is None else page.start < offset
            if page.start == 0:
                return messages
            offset = page.start


@given(data=FILES, limits_of_pages=st.lists(st.integers(1, 7), min_size=1, max_size=3))
@settings(max_examples=100, deadline=None)
def test_pages_of_any_limits_equal_the_whole_parse(tmp_path_factory, data, limits_of_pages):
    path = tmp_path_factory.mktemp("law") / "n.jsonl"
    path.write_bytes(data)
    found = located(path)
    whole = shown(whole_parse(path))
    assert shown(read_all(found, "forward", limits_of_pages)) == whole
    if data:
        assert shown(read_all(found, "backward", limits_of_pages)) == whole
    assert shown(m for page in stream(found) for m in page.messages) == whole
    backward = stream(found, direction="backward")
    assert shown(m for page in reversed(backward) for m in page.messages) == whole


@given(data=FILES, draw=st.data())
@settings(max_examples=100, deadline=None)
def test_any_place_splits_a_file_in_what_is_before_and_behind(tmp_path_factory, data, draw):
    path = tmp_path_factory.mktemp("law") / "n.jsonl"
    path.write_bytes(data)
    found = located(path)
    whole = shown(whole_parse(path))
    page = read(found, limit=draw.draw(st.integers(1, 9)))
    for place in {page.next, page.start, draw.draw(st.integers(0, len(data) + 2))}:
        behind = shown(m for p in stream(found, place) for m in p.messages)
        before = shown(m for p in reversed(stream(found, place, "backward")) for m in p.messages)
        assert whole[: len(before)] == before
        assert whole[len(whole) - len(behind) :] == behind
        if place in {page.next, page.start}:
            assert before + behind == whole


@given(data=FILES, cut=st.floats(0, 1), limit=st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_what_grows_is_read_once_and_in_order(tmp_path_factory, data, cut, limit):
    path = tmp_path_factory.mktemp("law") / "n.jsonl"
    path.write_bytes(data[: int(len(data) * cut)])
    found = located(path)
    messages, offset = [], 0
    for size in (int(len(data) * cut), len(data)):
        with path.open("ab") as file:
            file.write(data[path.stat().st_size : size])
        eof = False
        while not eof:
            page = read(found, offset, limit=limit)
            messages += page.messages
            offset, eof = page.next, page.eof
    assert shown(messages) == shown(whole_parse(path))
