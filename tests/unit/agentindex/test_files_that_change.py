"""Files that change under the reader, before each of its reads (behaviour B3, formats §6.28).

Whatever is read then is of the old file or the new one, line by line, or a refusal.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flue_grpc.agentindex import pages
from flue_grpc.agentindex.hit_filter import HitFilter
from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.ranked_search import RankedSearch
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.agentindex.snapshots import SnapshotFilter
from flue_grpc.agentindex.substring import SubstringSearch
from flue_grpc.cancel import NEVER
from flue_grpc.errors import FlueError
from flue_grpc.listing import Placed
from tests.unit.agentindex.real_home import RealHome, claude_answer, claude_prompt, session_id
from tests.waiting import wait_until

ID = session_id(1)
OLD = [claude_prompt(f"needle old {n} " + "x" * 9000, n % 60) for n in range(40)]
NEW = [claude_prompt(f"needle new {n} " + "y" * 4000, n % 60) for n in range(30)]
TEXTS = {f"needle {kind} {n}" for kind in ("old", "new", "more") for n in range(40)}


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def empty(path):
    os.truncate(path, 0)


def grow(path):
    with path.open("ab") as file:
        file.write(claude_prompt("needle more 1") + claude_prompt("needle more 2")[:-9])


def replace(path):
    fresh = path.with_suffix(".new")
    fresh.write_bytes(b"".join(NEW))
    fresh.rename(path)


def rewrite(path):
    path.write_bytes(b"".join(NEW))


def vanish(path):
    path.unlink(missing_ok=True)


def become_a_directory(path):
    path.unlink(missing_ok=True)
    path.mkdir(exist_ok=True)


def become_a_fifo(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def become_a_link(path):
    path.unlink(missing_ok=True)
    path.symlink_to("/etc/passwd")


CHANGES = [
    *(cut, empty, grow, replace, rewrite, vanish),
    *(become_a_directory, become_a_fifo, become_a_link),
]


class Meddler:
    """Changes a file just before the ``at``-th system call that looks at it."""

    def __init__(self, monkeypatch, path, change):
        self._path = path
        self._change = change
        self._left = None
        for name in ("open", "pread", "preadv", "fstat"):
            monkeypatch.setattr(os, name, self._wrapped(getattr(os, name)))

    def arm(self, at):
        self._left = at

    @property
    def has_struck(self):
        return self._left is not None and self._left <= 0

    def _wrapped(self, call):
        def meddling(*arguments, **named):
            if self._left is not None and self._left > 0 and self._concerns(arguments[0]):
                self._left -= 1
                if self._left == 0:
                    self._change(self._path)
            return call(*arguments, **named)

        return meddling

    def _concerns(self, subject):
        if isinstance(subject, int):
            link = Path(f"/proc/self/fd/{subject}")
            return link.is_symlink() and str(self._path) in str(link.readlink())
        return str(subject) == str(self._path)


@pytest.fixture
def home(tmp_path):
    home = RealHome(tmp_path.resolve())
    home.claude(2, claude_prompt("needle more 3"), claude_answer())
    return home


@pytest.fixture
def index(home):
    home.claude(1, *OLD)
    settings = IndexSettings(str(home.path), home.directory, sweep_interval=1e9)
    with AgentIndex.open(settings) as opened:
        opened._events.stop()
        wait_until(lambda: not (opened.building or opened.lags))
        yield opened


def first_words(texts):
    return [" ".join(text.split()[:3]) for text in texts]


def page(index, **place):
    located = index.locate("claude", ID)
    page = pages.read_page(located, place.get("offset"), place["direction"], 100, "", NEVER)
    assert page.next <= page.file_size
    return [m.text for m in page.messages]


def transcript(index):
    located = index.locate("claude", ID)
    read = pages.read_transcript(located, None, "forward", 0, "", NEVER)
    return [message.text for page in read for message in page.messages]


def message(index):
    return ["".join(pages.read_message(index.locate("claude", ID), 0, 0, "", NEVER))]


def substring(index):
    steps = index.search(SubstringSearch("needle", HitFilter()), None, NEVER).items
    return [step.item.snippet for step in steps if isinstance(step, Placed)]


def ranked(index):
    steps = index.search_ranked(RankedSearch("needle", HitFilter(), 50), None, NEVER).items
    return [step.item.snippet for step in steps if isinstance(step, Placed)]


READERS = {
    "forward": lambda index: page(index, direction="forward"),
    "backward": lambda index: page(index, direction="backward"),
    "inside": lambda index: page(index, direction="forward", offset=100_007),
    "transcript": transcript,
    "message": message,
    "substring": substring,
    "ranked": ranked,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_file_that_changes_before_any_read_is_old_new_or_refused(
    index, home, monkeypatch, change, reader
):
    path = home.path / f".claude/projects/-home-dev-shop/{ID}.jsonl"
    meddler = Meddler(monkeypatch, path, change)
    at, struck = 0, True
    while struck:
        at += 1 + at // 8  # the first steps one by one
        _restore(path)
        meddler.arm(at)
        try:
            said = READERS[reader](index)
        except FlueError:
            said = []
        struck = meddler.has_struck
        assert set(first_words(said)) <= TEXTS
        assert at < 600
    assert at > 2


def _restore(path):
    if path.is_symlink() or path.exists():
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    path.write_bytes(b"".join(OLD))


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_file_that_changes_while_it_is_swept_ends_as_it_is(home, monkeypatch, change):
    path = home.claude(1, *OLD)
    meddler = Meddler(monkeypatch, path, change)
    at, struck = 0, True
    while struck:
        at += 1 + at // 8  # the first steps one by one
        _restore(path)
        directory = home.directory / str(at)
        settings = IndexSettings(str(home.path), directory, sweep_interval=0, ranked=False)
        meddler.arm(at)
        with AgentIndex.open(settings) as index:
            _swept(index)
            struck = meddler.has_struck
            index.refresh_all()
            _swept(index)
            said = _summaries(index)
            meddler.arm(0)
        with AgentIndex.open(IndexSettings(str(home.path), directory / "x", ranked=False)) as fresh:
            _swept(fresh)
            assert said == _summaries(fresh)
        assert at < 200
    assert at > 2


def _swept(index):
    wait_until(lambda: not index.building)


def _summaries(index):
    items = index.snapshot(SnapshotFilter(), None, NEVER).items
    return [step.item for step in items if isinstance(step, Placed)]
