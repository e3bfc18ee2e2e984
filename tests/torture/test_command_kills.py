"""Kill what replaces, copies and adopts databases: what is there is always one whole database."""

from __future__ import annotations

import random
import shutil
import time
from contextlib import closing

import apsw
import pytest

from flue_grpc.store.adoption import COPY_SUFFIX
from flue_grpc.store.checking import check
from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft, StoreSettings
from tests.torture.victim import until
from tests.unit.store.originals import SEARCH, TABLES

MESSAGES = 1500


@pytest.fixture
def data(directory):
    path = directory / "data"
    path.mkdir(mode=0o700)
    return path


def _fill(path, word):
    with closing(Store.open(path)) as store:
        store.create_session("s", word)
        for _ in range(MESSAGES // 500):
            store.append_messages("s", [Draft("user", f"{word} " * 150)] * 500)


def _first_words(path):
    """Return the words that the messages of a sound database begin with, and their number."""
    assert check(path, StoreSettings()).is_sound
    with closing(Store.open(path)) as store:
        contents = [placed.item.content for placed in store.list_messages("s")]
    return {content.split()[0] for content in contents}, len(contents)


def _killed(life, seconds):
    """Kill after some seconds; return whether it had ended by itself before."""
    until(time.monotonic() + seconds)
    return life.kill() == 0


def test_a_killed_restore_leaves_the_old_database_or_the_new_one(
    data, directory, nursery, *, kills, seed, record_property
):
    dice = random.Random(seed)
    _fill(directory / "new.db", "new")
    _fill(directory / "old.db", "old")
    left = set()
    for _ in range(max(6, kills // 20)):
        shutil.rmtree(data)
        data.mkdir(mode=0o700)
        shutil.copy(directory / "old.db", data / "store.db")
        source = str(directory / "new.db")
        order = ("restore", source, "--data-dir", str(data))
        _killed(nursery.run("flue_grpc.cli:main", *order), dice.uniform(0, 0.12))
        whole = [
            path for path in data.iterdir() if path.name.startswith("store.db") and _is_whole(path)
        ]
        assert whole
        if (data / "store.db").exists():
            words, count = _first_words(data / "store.db")
            assert count == MESSAGES
            left |= words
        assert nursery.run("flue_grpc.cli:main", *order).wait() == 0
        assert _first_words(data / "store.db") == ({"new"}, MESSAGES)
    assert left <= {"old", "new"}
    assert "old" in left
    record_property("kills", max(6, kills // 20))


def _is_whole(path):
    if path.name.endswith(("-wal", "-shm")):
        return False
    with closing(apsw.Connection(str(path))) as connection:
        try:
            return connection.execute("select count(*) from messages").get == MESSAGES
        except apsw.Error:
            return False


def test_a_killed_backup_is_whole_or_not_there(
    data, directory, nursery, *, kills, seed, record_property
):
    dice = random.Random(seed)
    _fill(data / "store.db", "kept")
    for turn in range(max(6, kills // 20)):
        copy = directory / f"copy-{turn}.db"
        order = ("backup", str(copy), "--data-dir", str(data))
        _killed(nursery.run("flue_grpc.cli:main", *order), dice.uniform(0, 0.08))
        if copy.exists():
            assert _first_words(copy) == ({"kept"}, MESSAGES)
    assert _first_words(data / "store.db") == ({"kept"}, MESSAGES)
    record_property("kills", max(6, kills // 20))


def test_a_killed_adoption_is_done_by_the_next_start(
    data, directory, nursery, *, kills, seed, record_property
):
    dice = random.Random(seed)
    original = directory / "original.db"
    with closing(apsw.Connection(str(original))) as connection:
        connection.execute(TABLES + SEARCH)
        connection.execute("INSERT INTO sessions VALUES ('s', 'a talk', 100, 200)")
        connection.executemany(
            "INSERT INTO messages (session_id, role, content, created_at) VALUES ('s', 'user', ?, 1)",
            (("first " * 100,) for _ in range(MESSAGES)),
        )
    database = data / "store.db"
    for _ in range(max(6, kills // 20)):
        shutil.rmtree(data)
        data.mkdir(mode=0o700)
        shutil.copy(original, database)
        for _ in range(2):
            _killed(nursery.run("tests.torture.opener:main", str(database)), dice.uniform(0, 0.2))
        assert nursery.run("tests.torture.opener:main", str(database)).wait() == 0
        assert _first_words(database) == ({"first"}, MESSAGES)
        copies = [path for path in data.iterdir() if COPY_SUFFIX in path.name]
        assert any(_is_whole(copy) for copy in copies)
    record_property("kills", 2 * max(6, kills // 20))
