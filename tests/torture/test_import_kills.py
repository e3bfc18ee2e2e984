"""Kill the import command at random moments: each session is there whole or not at all."""

from __future__ import annotations

import random
import time
from contextlib import closing

from flue_grpc.cli import main
from flue_grpc.store.checking import check
from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft, StoreSettings
from tests.torture.victim import until

SESSIONS, MESSAGES = 25, 40


def test_a_killed_import_leaves_whole_sessions(
    directory, nursery, *, kills, seed, capfdbinary, record_property
):
    dice = random.Random(seed)
    exported = directory / "export.jsonl"
    exported.write_bytes(_export(directory, capfdbinary))
    seen = []
    for turn in range(max(1, kills // 10)):
        data = directory / f"data-{turn}"
        life = _import(nursery, data, exported)
        until(time.monotonic() + dice.uniform(0.01, 0.25))
        assert life.kill() in (-9, 0)
        seen.append(_check(data))
        # What a killed one has left is no obstacle: whole sessions are passed over.
        assert _import(nursery, data, exported).wait() == (1 if seen[-1] else 0)
        assert _check(data) == SESSIONS
    assert any(count < SESSIONS for count in seen)
    record_property("kills", len(seen))


def _export(directory, capfdbinary):
    data = directory / "source"
    data.mkdir(mode=0o700)
    with closing(Store.open(data / "store.db")) as store:
        for number in range(SESSIONS):
            store.create_session(f"s{number}", f"title {number}")
            drafts = [Draft("user", f"m{number}-{n} " + "lorem " * 100) for n in range(MESSAGES)]
            store.append_messages(f"s{number}", drafts)
    assert main(["export", "--data-dir", str(data)]) == 0
    return capfdbinary.readouterr().out


def _import(nursery, data, exported):
    return nursery.run("flue_grpc.cli:main", "import", str(exported), "--data-dir", str(data))


def _check(data):
    """Return how many sessions are there, all of them whole and found by search."""
    if not (data / "store.db").exists():
        return 0
    with closing(Store.open(data / "store.db")) as store:
        names = [placed.item.id for placed in store.list_sessions("all")]
        for name in names:
            number = int(name.removeprefix("s"))
            contents = [placed.item.content.split()[0] for placed in store.list_messages(name)]
            assert contents == [f"m{number}-{n}" for n in range(MESSAGES)]
    assert check(data / "store.db", StoreSettings()).is_sound
    return len(names)
