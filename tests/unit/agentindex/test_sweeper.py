"""When the sweep runs, and that nothing waits for it (behaviour B1, B4)."""

from __future__ import annotations

import threading

import pytest

from flue_grpc.agentindex import local_sweep, sweeper
from flue_grpc.agentindex.catalog import Catalog
from flue_grpc.agentindex.index_file import open_index_file
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.agentindex.sweeper import Sweeper
from tests.unit.agentindex.logs import Home, Logs, log
from tests.waiting import wait_until

PATIENCE = 20.0


class Clock:
    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(sweeper, "time", clock)
    return clock


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path.resolve())


@pytest.fixture
def catalog():
    return Catalog()


@pytest.fixture
def make(home, catalog):
    made = []

    def make(**settings):
        file = open_index_file(home.directory, str(home.path), ())
        wanted = IndexSettings(str(home.path), home.directory, **settings)
        made.append((Sweeper(wanted, (Logs(),), file, catalog, lambda: None), file))
        return made[-1][0]

    yield make
    for one, file in made:
        one.stop()
        file.close()


@pytest.fixture
def sweeps(monkeypatch):
    """Counts sweeps of all roots, each held up while ``gate`` is closed."""
    counts = []
    gate = threading.Event()
    gate.set()
    plain = sweeper.discover

    def counting(roots, known):
        counts.append(None)
        assert gate.wait(PATIENCE)
        return plain(roots, known)

    monkeypatch.setattr(sweeper, "discover", counting)
    counting.counts, counting.gate = counts, gate
    return counting


def ids(catalog):
    return [session.summary.id for session in catalog.view().sessions]


def settle(one):
    wait_until(lambda: not one.building)


def test_it_is_building_from_the_start_until_the_first_sweep_is_complete(
    make, home, catalog, sweeps
):
    home.write("logs/a/x.jsonl", log(t=1))
    sweeps.gate.clear()
    one = make()
    assert one.building
    one.start()
    wait_until(lambda: sweeps.counts)
    assert one.building
    assert ids(catalog) == []
    sweeps.gate.set()
    settle(one)
    assert ids(catalog) == ["x"]


def test_pokes_within_the_interval_start_no_sweep(make, clock, sweeps):
    one = make()
    one.start()
    settle(one)
    clock.now += 9.9
    for _ in range(5):
        one.poke()
        assert not one.building
    clock.now += 0.2
    one.poke()
    assert one.building
    one.poke()
    settle(one)
    assert len(sweeps.counts) == 2
    clock.now += 9.9
    one.poke()
    assert not one.building


def test_a_poke_during_a_sweep_is_no_second_one(make, sweeps):
    sweeps.gate.clear()
    one = make(sweep_interval=1000)
    one.start()
    wait_until(lambda: sweeps.counts)
    for _ in range(5):
        one.poke()
    sweeps.gate.set()
    settle(one)
    assert len(sweeps.counts) == 1


def test_a_poke_finds_what_changed(make, home, catalog):
    one = make(sweep_interval=0)
    one.start()
    settle(one)
    home.write("logs/a/x.jsonl", log(t=1))
    one.poke()
    settle(one)
    assert ids(catalog) == ["x"]
    (home.path / "logs/a/x.jsonl").unlink()
    one.poke()
    settle(one)
    assert ids(catalog) == []


class TestRefresh:
    @pytest.fixture
    def one(self, make, home, sweeps):
        home.write("logs/a/x.jsonl", log(t=1, **{"in": 1}))
        one = make(sweep_interval=1000)
        one.start()
        settle(one)
        return one

    def test_new_grown_and_vanished_files_are_looked_at_without_a_sweep(
        self, one, home, catalog, sweeps
    ):
        new = home.write("logs/a/y.jsonl", log(t=2))
        one.refresh([str(new)])
        wait_until(lambda: ids(catalog) == ["y", "x"])
        home.append("logs/a/x.jsonl", log(t=3, **{"in": 5}))
        one.refresh([str(home.path / "logs/a/x.jsonl")])
        wait_until(lambda: catalog.get(("logs", "x")).summary.tokens.input == 6)
        new.unlink()
        one.refresh([str(new)])
        wait_until(lambda: ids(catalog) == ["x"])
        assert len(sweeps.counts) == 1
        assert not one.building

    def test_what_is_no_transcript_is_left_out(self, one, home, catalog):
        strange = home.write("logs/a/strange.txt", log(t=2))
        last = home.write("logs/a/z.jsonl", log(t=2))
        one.refresh([str(strange), str(home.path), "/nowhere", str(last)])
        wait_until(lambda: ids(catalog) == ["z", "x"])

    def test_an_unchanged_file_is_not_opened(self, one, home, catalog, monkeypatch):
        taken = []
        plain = local_sweep.LocalSweep.run
        monkeypatch.setattr(
            local_sweep.LocalSweep,
            "run",
            lambda self, dirty, gone: taken.append(dirty) or plain(self, dirty, gone),
        )
        last = home.write("logs/a/z.jsonl", log(t=2))
        one.refresh([str(home.path / "logs/a/x.jsonl"), str(last)])
        wait_until(lambda: ids(catalog) == ["z", "x"])
        assert [found.path for dirty in taken for found in dirty] == [str(last)]


def test_what_is_little_is_read_before_a_worker_begins(make, home, catalog, monkeypatch):
    one = make(sweep_interval=1000, worker_bytes=1000)
    one.start()
    settle(one)
    seen = []

    def working(_self, _roots, dirty, _first_tid):
        seen.append((ids(catalog), [found.source.id for found in dirty]))
        return True

    monkeypatch.setattr(sweeper.WorkerSweep, "run", working)
    large = home.write("logs/a/large.jsonl", b"x" * 2000)
    small = home.write("logs/a/small.jsonl", log(t=1))
    one.refresh([str(large), str(small)])
    wait_until(lambda: seen)
    assert seen == [(["small"], ["large"])]


def test_a_root_may_become_a_link_to_somewhere_else(make, home, catalog):
    home.write("logs/a/x.jsonl", log(t=1))
    one = make(sweep_interval=0)
    one.start()
    settle(one)
    home.write("elsewhere/a/y.jsonl", log(t=1))
    (home.path / "logs").rename(home.path / "away")
    (home.path / "logs").symlink_to("elsewhere")
    one.poke()
    settle(one)
    assert ids(catalog) == ["y"]
    assert one.directories[0] == str(home.path / "elsewhere")


def test_a_failed_sweep_is_logged_and_the_next_one_runs(make, home, catalog, monkeypatch, caplog):
    plain = sweeper.discover

    def failing(*_):
        monkeypatch.setattr(sweeper, "discover", plain)
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(sweeper, "discover", failing)
    home.write("logs/a/x.jsonl", log(t=1))
    one = make(sweep_interval=0)
    one.start()
    wait_until(lambda: "a sweep failed" in caplog.text)
    one.poke()
    settle(one)
    assert ids(catalog) == ["x"]


def test_stopping_waits_for_the_thread(make, sweeps):
    sweeps.gate.clear()
    one = make()
    one.start()
    wait_until(lambda: sweeps.counts)
    threading.Timer(0.01, sweeps.gate.set).start()
    one.stop()
    assert not one._thread.is_alive()
    one.stop()


def test_one_that_never_started_can_be_stopped(make):
    make().stop()
