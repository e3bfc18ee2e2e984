"""A shortage of our own says nothing of the files: the list stays as it was."""

from __future__ import annotations

import errno
import os
from contextlib import closing

import pytest

from flue_grpc.agentindex import sweep_worker
from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.index_file import open_index_file
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.agentindex.snapshots import SnapshotFilter
from flue_grpc.agentindex.worker_messages import WorkerOrder, WorkerReport
from flue_grpc.cancel import NEVER
from flue_grpc.errors import FlueError
from tests.unit.agentindex.real_home import RealHome, claude_answer, claude_prompt, session_id
from tests.waiting import wait_until

SHORTAGES = [errno.EMFILE, errno.ENFILE, errno.ENOMEM]
each_shortage = pytest.mark.parametrize("number", SHORTAGES, ids=errno.errorcode.get)


@pytest.fixture
def home(tmp_path):
    home = RealHome(tmp_path.resolve())
    home.fill(2)
    return home


@pytest.fixture
def index(home):
    settings = IndexSettings(str(home.path), home.directory, sweep_interval=0)
    with AgentIndex.open(settings) as opened:
        opened._events.stop()
        _swept(opened)
        yield opened


class Shortage:
    """Lets calls that open what lies below a home fail."""

    def __init__(self, monkeypatch, below, number, *calls):
        self._monkeypatch = monkeypatch
        self.failed = 0
        for name in calls:
            monkeypatch.setattr(os, name, self._failing(getattr(os, name), str(below), number))

    def end(self):
        self._monkeypatch.undo()

    def _failing(self, call, below, number):
        def failing(path, *arguments, **named):
            if str(path).startswith(below):
                self.failed += 1
                raise OSError(number, os.strerror(number))
            return call(path, *arguments, **named)

        return failing


def _swept(index):
    finished = index.sweeps.finished
    index.refresh_all()
    wait_until(lambda: index.sweeps.finished > finished and not index.building)


def _tried(index, shortage):
    """Let a sweep meet the shortage and end."""
    failed = shortage.failed
    index.refresh_all()
    wait_until(lambda: shortage.failed > failed and not index.building)


def _sessions(index):
    return [placed.item for placed in index.snapshot(SnapshotFilter(), None, NEVER).items]


@each_shortage
def test_directories_that_cannot_be_opened_for_a_while_keep_their_sessions(
    index, home, monkeypatch, number
):
    before = _sessions(index)
    shortage = Shortage(monkeypatch, home.path, number, "scandir")
    _tried(index, shortage)
    assert _sessions(index) == before
    shortage.end()
    home.claude(9, claude_prompt(), claude_answer())
    _swept(index)
    assert len(_sessions(index)) == len(before) + 1


@each_shortage
def test_transcripts_that_cannot_be_opened_for_a_while_stay_listed(
    index, home, monkeypatch, number
):
    before = _sessions(index)
    # In this order: the list that was asked for has begun a sweep.
    shortage = Shortage(monkeypatch, home.path, number, "open")
    home.claude(0, claude_prompt(), claude_answer(), claude_prompt("more"))
    _tried(index, shortage)
    assert _sessions(index) == before
    with pytest.raises(FlueError):
        index.read_page("claude", session_id(0), None, "forward", 10, "", NEVER)
    shortage.end()
    _swept(index)
    page = index.read_page("claude", session_id(0), None, "forward", 10, "", NEVER)
    assert [message.text for message in page.messages][-1] == "more"


def test_a_transcript_that_nobody_may_read_is_not_listed(index, home, monkeypatch):
    before = _sessions(index)
    _swept(index)  # the list that was asked for has begun one
    path = home.claude(0, claude_prompt(), claude_answer(), claude_prompt("more"))
    shortage = Shortage(monkeypatch, path, errno.EACCES, "open")
    _tried(index, shortage)
    assert len(_sessions(index)) == len(before) - 1


def test_a_shortage_of_the_worker_condemns_no_transcript(home, tmp_path, monkeypatch):
    """The worker reports that it gives up, with no file that it was reading."""
    monkeypatch.setattr(sweep_worker, "discover", _without_descriptors)
    reports = []
    monkeypatch.setattr(sweep_worker, "_report", reports.append)
    with (
        closing(open_index_file(home.directory, str(home.path), ())) as file,
        closing(file.writer()) as db,
        pytest.raises(SystemExit, match="gives up: Too many open files"),
    ):
        sweep_worker._sweep(WorkerOrder(os.fsencode(file.path), (), 1), db)
    assert reports == [WorkerReport()]


def _without_descriptors(*_):
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), "/home/dev/secret.jsonl")


@each_shortage
def test_the_log_tells_of_a_shortage_without_naming_a_file(
    index, home, monkeypatch, caplog, number
):
    home.claude(0, claude_prompt("other"))
    shortage = Shortage(monkeypatch, home.path, number, "open", "scandir")
    _tried(index, shortage)
    wait_until(lambda: "a sweep failed" in caplog.text)  # told once the sweep is over
    assert str(home.path) not in caplog.text
