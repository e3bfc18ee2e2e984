"""Followers catch up behind the sweeps, out of the way (techniques §2 and §3)."""

from __future__ import annotations

import sys
import textwrap
import threading

import apsw
import pytest

from flue_grpc.agentindex import background
from flue_grpc.agentindex.background import Background
from flue_grpc.agentindex.index_file import SchemaPart
from flue_grpc.errors import CancelledError
from tests.unit.agentindex.logs import log
from tests.unit.agentindex.test_usage import Shelf
from tests.waiting import wait_until


class Clock:
    def __init__(self):
        self.now = 100
        self.slept = []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


class Sizes:
    """Follows how far each transcript was read."""

    part = SchemaPart("sizes 1", "create table sizes(tid integer primary key, size integer);")

    def __init__(self):
        self.fills = []
        self.raises = None
        self.seen = []
        self.look = lambda: None
        self.gate = threading.Event()
        self.gate.set()

    def known(self, db):
        return dict(db.execute("select tid, size from sizes"))

    def lag(self, db, entries):
        known = self.known(db)
        sizes = {entry.tid: entry.record.standing.offset for entry in entries}
        if known.keys() - sizes.keys():
            return 1
        return sum(size - known.get(tid, 0) for tid, size in sizes.items())

    def fill(self, db, entries, adapters, pace):
        self.fills.append(threading.current_thread().name)
        if self.raises is not None:
            error, self.raises = self.raises, None
            raise error
        self.seen.append(self.look())
        while not self.gate.wait(0.001):
            pace()
        db.execute("delete from sizes")
        for entry in entries:
            pace()
            row = (entry.tid, entry.record.standing.offset)
            db.execute("insert into sizes values(?, ?)", row)


@pytest.fixture
def sizes():
    return Sizes()


@pytest.fixture
def shelf(tmp_path, sizes):
    shelf = Shelf(tmp_path)
    with shelf.file.writer() as db:
        db.execute(sizes.part.sql)
    yield shelf
    shelf.close()


@pytest.fixture
def damage():
    return []


@pytest.fixture
def make(shelf, sizes, damage):
    made = []

    def make(followers=(sizes,), worker_bytes=2**60):
        made.append(
            Background(
                followers,
                shelf.home.adapters,
                shelf.file,
                shelf.catalog,
                worker_bytes,
                lambda: damage.append(None),
            )
        )
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        one.stop()


def followed(shelf, sizes):
    with shelf.file.reader() as db:
        return sorted(sizes.known(db).values())


def test_it_lags_until_the_followers_have_caught_up(make, shelf, sizes):
    sizes.gate.clear()
    one = make()
    assert one.lags
    shelf.home.write("logs/a/x.jsonl", log(t=1))
    shelf.sweep()
    one.wake()
    wait_until(lambda: sizes.fills)
    assert one.lags
    sizes.gate.set()
    wait_until(lambda: not one.lags)
    assert followed(shelf, sizes) == [len(log(t=1)) + 1]


def test_appends_and_vanished_transcripts_are_followed(make, shelf, sizes):
    one = make()
    for name in "xy":
        shelf.home.write(f"logs/a/{name}.jsonl", log(t=1))
    shelf.sweep()
    one.wake()
    wait_until(lambda: not one.lags)
    shelf.home.append("logs/a/x.jsonl", log(t=2))
    (shelf.home.path / "logs/a/y.jsonl").unlink()
    shelf.sweep()
    one.wake()
    assert one.lags
    wait_until(lambda: not one.lags)
    assert followed(shelf, sizes) == [2 * len(log(t=1)) + 2]


def test_a_wake_during_the_work_is_not_lost(make, shelf, sizes):
    one = make()
    sizes.look = lambda: one.lags
    sizes.gate.clear()
    shelf.home.write("logs/a/x.jsonl", log(t=1))
    shelf.sweep()
    one.wake()
    wait_until(lambda: sizes.fills)
    shelf.home.append("logs/a/x.jsonl", log(t=2))
    shelf.sweep()
    one.wake()
    sizes.gate.set()
    wait_until(lambda: not one.lags)
    assert sizes.seen == [True, True]
    assert followed(shelf, sizes) == [2 * len(log(t=1)) + 2]


def test_with_nothing_to_do_nothing_is_written(make, shelf, sizes):
    one = make()
    one.wake()
    wait_until(lambda: not one.lags)
    assert sizes.fills == []


def test_without_followers_nothing_lags(make):
    one = make(followers=())
    one.wake()
    assert not one.lags


def test_stopping_ends_the_work(make, shelf, sizes):
    sizes.gate.clear()
    shelf.home.write("logs/a/x.jsonl", log(t=1))
    shelf.sweep()
    one = make()
    one.wake()
    wait_until(lambda: sizes.fills)
    one.stop()
    assert not one._thread.is_alive()


def test_a_follower_that_fails_is_tried_again_at_the_next_wake(make, shelf, sizes, caplog):
    shelf.home.write("logs/a/x.jsonl", log(t=1))
    shelf.sweep()
    sizes.raises = RuntimeError("unforeseen")
    one = make()
    one.wake()
    wait_until(lambda: "followers of the transcript index failed" in caplog.text)
    assert one.lags
    one.wake()
    wait_until(lambda: not one.lags)


def test_damage_is_told(make, shelf, sizes, damage):
    shelf.home.write("logs/a/x.jsonl", log(t=1))
    shelf.sweep()
    sizes.raises = apsw.CorruptError("malformed")
    make().wake()
    wait_until(lambda: damage)


def test_the_thread_rests_as_long_as_it_works(make, monkeypatch):
    one = make()
    clock = Clock()
    monkeypatch.setattr(background, "time", clock)
    monkeypatch.setattr(background, "BACKGROUND_SLICE_SECONDS", 5)
    one._rested = clock.now
    for _ in range(20):
        clock.now += 1
        one._pace()
    assert clock.slept == [5, 5, 5]
    one._stopping.set()
    with pytest.raises(CancelledError):
        one._pace()


class TestOutside:
    @pytest.fixture
    def follower(self, tmp_path, monkeypatch):
        """Start workers that know the follower; each notes that it was there."""

        def follower(prelude=""):
            program = tmp_path / "worker.py"
            program.write_text(
                textwrap.dedent(prelude)
                + textwrap.dedent(
                    f"""
                    import pathlib
                    from flue_grpc.agentindex import followers, sweep_worker
                    from tests.unit.agentindex.test_background import Sizes
                    with open({str(tmp_path / "ran")!r}, "a") as file:
                        file.write("x")
                    followers.FOLLOWERS = (Sizes(),)
                    sweep_worker.main()
                    """
                )
            )
            launcher = tmp_path / "launcher"
            launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}"\n')
            launcher.chmod(0o700)
            monkeypatch.setattr(sys, "executable", str(launcher))
            return tmp_path / "ran"

        return follower

    def test_much_is_done_by_a_worker(self, make, shelf, sizes, follower):
        ran = follower()
        shelf.home.write("logs/a/x.jsonl", log(t=1))
        shelf.sweep()
        one = make(worker_bytes=0)
        one.wake()
        wait_until(lambda: not one.lags)
        assert (ran.read_text(), sizes.fills) == ("x", [])
        assert followed(shelf, sizes) == [len(log(t=1)) + 1]

    @pytest.mark.parametrize("program", ["/bin/false", "/nonexistent/python"])
    def test_without_one_the_thread_does_it(self, make, shelf, sizes, monkeypatch, program):
        monkeypatch.setattr(sys, "executable", program)
        shelf.home.write("logs/a/x.jsonl", log(t=1))
        shelf.sweep()
        one = make(worker_bytes=0)
        one.wake()
        wait_until(lambda: not one.lags)
        assert sizes.fills == ["followers"]

    def test_stopping_ends_the_worker(self, make, shelf, follower, tmp_path):
        busy = tmp_path / "busy"
        follower(
            f"""
            import pathlib, time
            from flue_grpc.agentindex import index_rows
            def load(db):
                pathlib.Path({str(busy)!r}).touch()
                time.sleep(600)
            index_rows.load_entries = load
            """
        )
        shelf.home.write("logs/a/x.jsonl", log(t=1))
        shelf.sweep()
        one = make(worker_bytes=0)
        one.wake()
        wait_until(busy.exists)
        one.stop()
        assert not one._thread.is_alive()
        assert one._process._process.returncode == 0
