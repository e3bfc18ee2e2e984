"""What was answered survives a power cut at any moment, in any order of unsynced sectors."""

from __future__ import annotations

import random
import shutil
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from flue_grpc.store.checking import check
from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft, StoreSettings

from .power_cuts import PowerVFS

APPENDS = 24


@pytest.fixture
def base():
    """A directory in memory where there is one: hundreds of databases are laid down in it."""
    memory = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="flue", dir=memory if memory.is_dir() else None))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def vfs():
    made = PowerVFS()
    yield made
    made.unregister()


class Run:
    """A Store that is written to; at some steps it is noted what a power cut would leave."""

    def __init__(self, path, vfs, dice, durability):
        self.cuts = []
        self._vfs = vfs
        self._dice = dice
        self._path = path
        self._durability = durability
        self.begun, self.answered = 0, 0

    def run(self):
        settings = StoreSettings(durability=self._durability, vfs=self._vfs.name)
        with closing(Store.open(self._path, settings)) as store:
            store.create_session("s1", "t")
            store._database.writer._checkpoints._next = 10
            self._vfs.before_step = self._note
            for number in range(APPENDS):
                self.begun = number + 1
                text = f"m{number} " + "lorem " * self._dice.choice((1, 500, 3000))
                store.append_message("s1", Draft("user", text), f"r{number}")
                self.answered = number + 1
        self._vfs.before_step = lambda: None

    def _note(self):
        if self._dice.random() < 0.15:
            self.cuts.append((self.answered, self.begun, self._vfs.disk.cut(self._dice)))


def recovered(base, files):
    """Lay the files down and open them as after a restart; return the first words."""
    base.mkdir(mode=0o700)
    for name, data in files.items():
        if name.endswith(("store.db", "store.db-wal")):
            (base / name.rsplit("/", 1)[1]).write_bytes(data)
    with closing(Store.open(base / "store.db")) as store:
        if not [*store.list_sessions("all")]:
            return []
        found = [p.item.content.split()[0] for p in store.list_messages("s1")]
        again = store.append_message("s1", Draft("user", "again"), "after")
        assert again.id > len(found)
    assert check(base / "store.db", StoreSettings()).is_sound
    return found


@pytest.mark.parametrize("seed", range(2))
def test_a_power_cut_loses_nothing_that_was_answered(base, vfs, seed, record_property):
    run = Run(base / "data" / "store.db", vfs, random.Random(seed), "full")
    run.run()
    assert len(run.cuts) > 15
    record_property("cuts", len(run.cuts))
    for number, (answered, begun, files) in enumerate(run.cuts):
        found = recovered(base / f"cut-{number}", files)
        assert found == [f"m{n}" for n in range(len(found))]
        assert answered <= len(found) <= begun


def test_without_syncs_a_power_cut_loses_the_end_and_nothing_else(base, vfs):
    run = Run(base / "data" / "store.db", vfs, random.Random(9), "normal")
    run.run()
    lost = 0
    for number, (answered, begun, files) in enumerate(run.cuts):
        found = recovered(base / f"cut-{number}", files)
        assert found == [f"m{n}" for n in range(len(found))]
        assert len(found) <= begun
        lost += len(found) < answered
    # Else this harness could not tell what full durability is for.
    assert lost > 0
