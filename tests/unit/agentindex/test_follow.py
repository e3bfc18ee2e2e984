"""Following one transcript: nothing lost, nothing twice, and every end (rule 9)."""

from __future__ import annotations

import errno
import os
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc import limits
from flue_grpc.agentindex import page_lines
from flue_grpc.agentindex.follow import Beginning, Follow
from flue_grpc.agentindex.followed_files import FollowedFiles
from flue_grpc.cancel import NEVER
from flue_grpc.errors import CancelledError, CursorGoneError, TranscriptNotFoundError
from tests.unit.agentindex.notes import Notes, located, note, whole_parse

MODEL = "m"


class Source:
    """What a follow needs of the index; ``locate`` knows the file as it is now."""

    def __init__(self, path):
        self.path = path
        self.followed = FollowedFiles()
        self.adapter = Notes()
        self.refreshed = 0
        self.is_fresh = True
        self._known = None

    def locate(self, tool, session_id):
        if not self.path.exists():
            raise TranscriptNotFoundError("there is none", {"building": "true"})
        if self.is_fresh or self._known is None:
            self._known = located(self.path, adapter=self.adapter)
        return self._known

    def path_of(self, tool, session_id):
        return str(self.path)

    def refresh_all(self):
        self.refreshed += 1


class Reader:
    """One follow, read step by step on the thread of the test."""

    def __init__(self, path, cancel=NEVER, source=None, **fields):
        wanted = {"tool": "notes", "id": "n", "offset": 0, "limit": 0, "revision": "", **fields}
        self.path = path
        self.source = source or Source(path)
        self.follow = Follow(self.source, Beginning(**wanted))
        self.steps = self.follow.steps(cancel)
        self.taken = []

    def next(self):
        self.taken.append(next(self.steps))
        return self.taken[-1]

    def read_all(self):
        """Take steps until one has no messages."""
        while self.next().page.messages:
            pass
        return self

    def settle(self):
        """Read what was written; where heartbeats are always due, one comes before it."""
        self.next()
        return self.read_all()

    def write(self, *objects):
        """Append lines, and wake as the file events do."""
        with self.path.open("ab") as file:
            file.write(b"".join(data + b"\n" for data in objects))
        self.source.followed.wake([str(self.path)])

    @property
    def texts(self):
        return [message.text for step in self.taken for message in step.page.messages]


@pytest.fixture
def path(tmp_path):
    path = tmp_path.resolve() / "n.jsonl"
    path.write_bytes(note("a") + b"\n" + note("b") + b"\n")
    return path


@pytest.fixture
def reader(path):
    return Reader(path).read_all()


@pytest.fixture
def restless(monkeypatch):
    monkeypatch.setattr(limits, "HEARTBEAT_SECONDS", 0)


def test_the_backlog_then_the_mark_then_what_is_written(reader):
    assert [(len(step.page.messages), step.caught_up) for step in reader.taken] == [
        (2, False),
        (0, True),
    ]
    reader.write(note("c"))
    assert (reader.next().caught_up, reader.texts) == (True, ["a", "b", "c"])


def test_what_is_written_during_the_backlog_comes_once(path):
    path.write_bytes((note("x") + b"\n") * 40)
    reader = Reader(path)
    reader.next()
    reader.write(note("y"))
    reader.read_all()
    while len(reader.texts) < 41:
        reader.next()
    assert reader.texts == ["x"] * 40 + ["y"]


def test_a_wake_before_the_waiting_is_not_lost(reader):
    """Each wake comes between the reading and the waiting; the heartbeat is far away."""
    for text in "cdef":
        reader.write(note(text))
        assert reader.next().page.messages[0].text == text


def test_the_mark_tells_the_place_and_the_size(path):
    with path.open("ab") as file:
        file.write(b'{"notes":["half')
    mark = Reader(path).read_all().taken[-1].page
    whole = len(note("a") + note("b")) + 2
    assert (mark.start, mark.next, mark.file_size, mark.eof) == (whole, whole, whole + 15, True)
    assert mark.revision == Reader(path).next().page.revision


@pytest.mark.usefixtures("restless")
def test_a_heartbeat_moves_on_over_what_holds_no_messages(reader):
    reader.write(b"{}", b"not json", b"")
    beat = reader.settle().taken[-1]
    size = reader.path.stat().st_size
    assert (beat.page.messages, beat.page.next, beat.page.file_size) == ((), size, size)
    assert beat.caught_up


class Restless:
    """A call that is woken all the time, until it has been so for too long."""

    def __init__(self):
        self.follow = None
        self.until = time.monotonic() + 20

    def check(self):
        if self.follow is not None:
            self.follow.event.set()
        if time.monotonic() > self.until:
            raise CancelledError("no heartbeat came")


def test_a_follow_that_wakes_for_nothing_still_proves_that_it_lives(path, monkeypatch):
    monkeypatch.setattr(limits, "HEARTBEAT_SECONDS", 0.02)
    cancel = Restless()
    reader = Reader(path, cancel).read_all()
    cancel.follow = reader.follow
    beats = [reader.next() for _ in range(3)]
    assert [(step.page.messages, step.caught_up) for step in beats] == [((), True)] * 3


def test_a_cancelled_follow_ends_and_leaves_nothing(path):
    ended = threading.Event()

    class Call:
        def check(self):
            if ended.is_set():
                raise CancelledError("the call was cancelled")

    reader = Reader(path, Call()).read_all()
    assert reader.source.followed.count == 1
    ended.set()
    reader.follow.event.set()
    with pytest.raises(CancelledError):
        reader.next()
    assert reader.source.followed.count == 0


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.write_bytes(note("A") + b"\n" + note("b") + b"\n" + note("c") + b"\n"),
        lambda path: path.write_bytes(note("a") + b"\n" + note("B") + b"\n" + note("c") + b"\n"),
        lambda path: os.truncate(path, len(note("a")) + 1),
        lambda path: os.truncate(path, 0),
    ],
    ids=["another head", "the same head", "cut", "emptied"],
)
def test_bytes_that_were_given_and_are_no_more_end_it(reader, harm):
    harm(reader.path)
    reader.follow.event.set()
    with pytest.raises(CursorGoneError):
        reader.next()
    assert reader.source.followed.count == 0


def test_a_file_that_takes_its_place_ends_it_even_with_the_same_content(reader):
    other = reader.path.with_suffix(".new")
    other.write_bytes(reader.path.read_bytes())
    other.rename(reader.path)
    reader.follow.event.set()
    with pytest.raises(CursorGoneError):
        reader.next()


@pytest.mark.usefixtures("restless")
def test_a_cut_behind_the_place_takes_nothing_away(path):
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'{"notes":["half')
    reader = Reader(path).read_all()
    os.truncate(path, size)
    assert reader.settle().taken[-1].page.file_size == size
    reader.write(note("c"))
    reader.settle()
    assert reader.texts == ["a", "b", "c"]


class TestLost:
    def test_a_file_that_is_gone_is_not_found_after_a_moment(self, reader, monkeypatch):
        monkeypatch.setattr(limits, "MOVED_SECONDS", 0.02)
        reader.path.unlink()
        reader.follow.event.set()
        with pytest.raises(TranscriptNotFoundError) as caught:
            reader.next()
        assert caught.value.metadata == {"building": "true"}
        assert (reader.source.refreshed, reader.source.followed.count) == (1, 0)

    def test_a_file_that_was_moved_goes_on_where_it_lies_now(self, reader, tmp_path):
        moved = reader.path.rename(tmp_path.resolve() / "n2.jsonl")
        reader.source.path = reader.path = moved
        reader.follow.event.set()
        reader.write(note("c"))
        assert reader.next().page.messages[0].text == "c"
        reader.write(note("d"))
        assert reader.next().page.messages[0].text == "d"

    def test_a_file_that_opens_and_cannot_be_read_is_lost_too(self, reader, monkeypatch):
        monkeypatch.setattr(limits, "MOVED_SECONDS", 0.05)
        monkeypatch.setattr(limits, "POLL_SECONDS", 0.01)

        def broken(*_):
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(os, "pread", broken)
        source = reader.source
        known = source._known
        source.locate = lambda *_: known
        reader.follow.event.set()
        with pytest.raises(TranscriptNotFoundError):
            reader.next()
        assert 1 <= source.refreshed <= 6, "it looks now and then, never as fast as it can"


class TestLimit:
    @pytest.mark.parametrize(("limit", "expected"), [(1, "a"), (2, "ab"), (3, "abc")])
    def test_it_counts_backlog_and_news(self, path, limit, expected):
        reader = Reader(path, limit=limit)
        while len(reader.texts) < len(expected):
            if reader.next().caught_up and limit == 3:
                reader.write(note("c"), note("d"))
        with pytest.raises(StopIteration):
            reader.next()
        assert reader.texts == list(expected)

    def test_it_stops_before_the_line_that_would_pass_it(self, path):
        reader = Reader(path, limit=3).read_all()
        reader.write(note("c", "d"))
        with pytest.raises(StopIteration):
            reader.next()
        assert reader.texts == ["a", "b"]


class TestCost:
    """An append is parsed once, and little of what lies before it (behaviour B6)."""

    @pytest.fixture
    def long(self, path):
        path.write_bytes(note("first", model=MODEL) + b"\n" + (note("x" * 1000) + b"\n") * 300)
        return Reader(path).read_all()

    def test_it_does_not_grow_with_what_came_since_the_follow_began(self, long):
        for _ in range(100):
            long.write(note("y" * 1000))
            assert len(long.next().page.messages) == 1
        long.source.adapter.parsed = 0
        long.write(note("z"))
        long.next()
        most = limits.FIRST_READ_BYTES // 1000 + 3
        assert long.source.adapter.parsed <= most

    def test_what_the_parser_knew_is_never_too_old(self, long, monkeypatch):
        monkeypatch.setattr(page_lines, "CONTEXT_WALK_BYTES", limits.FIRST_READ_BYTES)
        long.write(note("changes", model="other"))
        long.next()
        for _ in range(150):
            long.write(note("y" * 1000))
            long.next()
        assert [m.model for m in long.taken[-1].page.messages] == ["other"]


PIECES = st.lists(
    st.one_of(
        st.builds(lambda texts: note(*texts) + b"\n", st.lists(st.text(max_size=4), max_size=3)),
        st.just(note("no newline")),
        st.just(note("m", model="new")),
        st.sampled_from([b"\n", b"\r\n", b"broken\n", b'{"notes":["br\n', b"\0\0"]),
    ),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(pieces=PIECES, cuts=st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_any_pieces_in_any_rhythm_give_what_the_whole_file_gives(tmp_path_factory, pieces, cuts):
    path = tmp_path_factory.mktemp("follow") / "n.jsonl"
    path.write_bytes(b"")
    data = b"".join(pieces)
    before, limits.HEARTBEAT_SECONDS = limits.HEARTBEAT_SECONDS, 0
    try:
        reader = Reader(path).read_all()
        place = 0
        while place < len(data):
            cut = cuts[place % len(cuts)]
            with path.open("ab") as file:
                file.write(data[place : place + cut])
            place += cut
            reader.settle()
    finally:
        limits.HEARTBEAT_SECONDS = before
    expected = [(m.offset, m.index, m.text, m.model) for m in whole_parse(path)]
    given_ = [m for step in reader.taken for m in step.page.messages]
    assert [(m.offset, m.index, m.text, m.model) for m in given_] == expected
