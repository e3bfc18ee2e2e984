"""Kill the import command at random moments: each session is there whole or not at all."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from contextlib import closing

from flue_grpc.store.checking import check
from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft, StoreSettings
from tests.torture.victim import until

SESSIONS, MESSAGES = 40, 50


def test_a_killed_import_leaves_whole_sessions(directory, kills, seed):
    dice = random.Random(seed)
    exported = directory / "export.jsonl"
    _export(directory, exported)
    seen = set()
    for turn in range(max(1, kills // 10)):
        data = directory / f"data-{turn}"
        process = _start(data, exported)
        until(time.monotonic() + dice.uniform(0.05, 0.6))
        process.kill()
        process.wait()
        seen.add(_check(data))
    data = directory / "data-whole"
    assert _start(data, exported).wait() == 0
    assert _check(data) == SESSIONS
    assert seen <= set(range(SESSIONS + 1))


def _export(directory, target):
    data = directory / "source"
    data.mkdir(mode=0o700)
    with closing(Store.open(data / "store.db")) as store:
        for number in range(SESSIONS):
            store.create_session(f"s{number}", f"title {number}")
            drafts = [Draft("user", f"m{number}-{n} " + "lorem " * 100) for n in range(MESSAGES)]
            store.append_messages(f"s{number}", drafts)
    with target.open("wb") as file:
        command = [sys.executable, "-m", "flue_grpc", "export", "--data-dir", str(data)]
        assert subprocess.run(command, stdout=file, check=False).returncode == 0


def _start(data, exported):
    command = [sys.executable, "-m", "flue_grpc", "import", str(exported), "--data-dir", str(data)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


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
