from __future__ import annotations

import os

import pytest

from flue_grpc import limits
from flue_grpc.agentindex import pages
from flue_grpc.agentindex.adapters.base import Context
from flue_grpc.agentindex.located import Checkpoints
from flue_grpc.agentindex.transcript_file import TranscriptFile
from flue_grpc.cancel import NEVER
from flue_grpc.errors import CancelledError, CursorGoneError, TranscriptNotFoundError
from tests.unit.agentindex.notes import located, note
from tests.unit.agentindex.page_reading import BOTH_WAYS, read, stream, texts


@pytest.fixture
def write(tmp_path):
    path = tmp_path / "n.jsonl"

    def write(data):
        path.write_bytes(data)
        return located(path)

    return write


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
