"""Databases of every released version are read, newer ones are left alone (behaviour A1)."""

from __future__ import annotations

import shutil
from contextlib import closing

import apsw
import pytest

from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.index_file import index_path
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.agentindex.snapshots import SnapshotFilter
from flue_grpc.cancel import NEVER
from flue_grpc.errors import UnusableDatabaseError
from flue_grpc.store.backup import backup
from flue_grpc.store.checking import check
from flue_grpc.store.migrations import CURRENT_VERSION
from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft, MessageQuery, StoreSettings
from tests.unit.agentindex.real_home import RealHome
from tests.upgrade.reading import KEPT, VERSIONS, said, say

each_version = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture
def database(tmp_path, version):
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    return shutil.copy(KEPT / version / "store.db", data / "store.db")


@each_version
def test_a_database_of_a_released_version_says_what_it_said(database, version):
    with closing(Store.open(database)) as store:
        assert say(store) == said(version)
    assert check(database, StoreSettings()).is_sound


@each_version
def test_a_database_of_a_released_version_is_written_on(database, version):
    last = max(m["id"] for messages in said(version)["messages"].values() for m in messages)
    with closing(Store.open(database)) as store:
        made = store.append_message("s1", Draft("user", "a needle"), "new")
        assert made.id > last + 1  # the message that was deleted keeps its number to itself
        assert made.created_at > max(s["updated_at"] for s in said(version)["sessions"])
        (found,) = [s.item for s in store.search_messages(MessageQuery("needle"))]
        assert found.message.id == made.id


@each_version
def test_a_backup_of_a_released_version_is_that_version_s(database, version, tmp_path):
    copy = tmp_path / "copy.db"
    backup(database, copy, StoreSettings())
    with closing(Store.open(copy)) as store:
        assert say(store) == said(version)


@each_version
def test_a_database_of_a_version_to_come_is_refused_untouched(database, version):
    with closing(apsw.Connection(str(database))) as connection:
        newer = (CURRENT_VERSION + 1, "from the future", 1)
        connection.execute("INSERT INTO flue_migrations VALUES (?, ?, ?)", newer)
    before = database.read_bytes(), database.stat().st_mtime_ns
    with pytest.raises(UnusableDatabaseError, match=f"schema version {CURRENT_VERSION + 1}"):
        Store.open(database)
    assert (database.read_bytes(), database.stat().st_mtime_ns) == before
    assert {path.name for path in database.parent.iterdir()} <= {"store.db", "lock"}


def _index(home):
    return AgentIndex.open(IndexSettings(str(home.path), home.directory, sweep_interval=0))


def _sessions(index):
    while index.building or index.lags:
        index.poke()
    return [step.item for step in index.snapshot(SnapshotFilter(), None, NEVER).items]


@pytest.mark.parametrize(
    "damage",
    [
        "update format set value = '0 little'",
        "update format set value = value || ' 9'",
        "delete from format",
        "drop table format",
        "drop table transcripts",
        "update transcripts set record = x'00'",
        "update states set state = x'c1'",
    ],
)
def test_an_index_of_another_format_is_made_anew(tmp_path, damage):
    home = RealHome(tmp_path.resolve())
    home.fill(2)
    with _index(home) as index:
        before = _sessions(index)
    path = index_path(home.directory, str(home.path))
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(damage)
    home.fill(3)
    with _index(home) as index:
        after = _sessions(index)
        assert len(after) == 9
        assert {s.id for s in before} < {s.id for s in after}
