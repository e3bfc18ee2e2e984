"""A schema of a version to come reaches a released database whole or not at all (behaviour A1)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from flue_grpc.errors import AlreadyRunningError, UnusableDatabaseError
from flue_grpc.store.checking import check
from flue_grpc.store.database import Database
from flue_grpc.store.migrations import MIGRATIONS
from flue_grpc.store.store import Store
from flue_grpc.store.values import StoreSettings
from tests.unit.store.faults import WRITE, Fault, FaultyVFS, full, io_error
from tests.upgrade.migrating import BALLAST, STATEMENTS, second, use
from tests.upgrade.reading import DRAFTS, KEPT, VERSIONS, said, say

ROOT = Path(__file__).parents[2]
HOUR = 3600 * 1_000_000


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture
def database(tmp_path, version):
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    return shutil.copy(KEPT / version / "store.db", data / "store.db")


@pytest.fixture
def knows(monkeypatch):
    """Let this program know some migrations beyond those it has."""

    def knows(*further):
        use(monkeypatch.setattr, *further)

    return knows


def rows(path, sql):
    with closing(apsw.Connection(str(path))) as connection:
        return connection.execute(sql).fetchall()


def whole(path):
    """Everything that a database holds: its schema, and all rows of all its tables."""
    schema = rows(path, "SELECT type, name, sql FROM sqlite_schema ORDER BY name")
    tables = [name for kind, name, _ in schema if kind == "table"]
    return schema, {name: rows(path, f'SELECT * FROM "{name}"') for name in tables}


def requests(path):
    return sorted(rows(path, "SELECT rpc, request_id, body, made, created_at FROM requests"))


def applied(path):
    return rows(path, "SELECT version, name FROM flue_migrations ORDER BY version")


FIRST = [(migration.version, migration.name) for migration in MIGRATIONS]
BOTH = [*FIRST, (len(MIGRATIONS) + 1, "a second one")]


def is_said(path, version):
    """Whether the Store opens, and says of everything what it said when it was released."""
    with closing(Store.open(path)) as store:
        return say(store) == said(version) and check(path, StoreSettings()).is_sound


def begun(path, at):
    """Start another process that stands still before statement ``at`` of the migration."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.upgrade.migrating", str(path), str(at)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"in the middle\n"
    return process


def test_a_migration_keeps_everything(database, version, knows):
    before = requests(database)
    assert len(before) == 6
    knows(second())
    assert is_said(database, version)
    assert requests(database) == before
    assert applied(database) == BOTH
    weights = rows(database, "SELECT pinned, weight FROM memory_entries ORDER BY id")
    assert weights == [(1, 2), (0, 1), (1, 2), (0, 1)]
    after = whole(database)
    assert is_said(database, version)
    assert whole(database) == after  # it is not done a second time


def test_a_request_id_is_remembered_across_a_migration(database, version, knows):
    knows(second())
    last = max(session["updated_at"] for session in said(version)["sessions"])
    with closing(Store(Database.open(database, StoreSettings(), lambda: last + HOUR))) as store:
        made = store.append_messages("s1", DRAFTS, "batch-1")
        assert [message.id for message in made] == [
            m["id"] for m in said(version)["messages"]["s1"]
        ]
        assert store.create_session("s2", "subagent: helper", "create-s2").id == "s2"
        assert say(store) == said(version)


@pytest.mark.parametrize("at", range(len(STATEMENTS) + 1))
def test_a_migration_that_fails_half_way_leaves_the_old_schema(database, version, knows, at):
    Store.open(database).close()
    before = whole(database)
    knows(second((*STATEMENTS[:at], "INSERT INTO nowhere VALUES (1)", *STATEMENTS[at:])))
    with pytest.raises(UnusableDatabaseError, match="no such table: nowhere"):
        Store.open(database)
    assert whole(database) == before
    knows()
    assert is_said(database, version)
    assert applied(database) == FIRST


@pytest.mark.parametrize("error", [full(), io_error(WRITE)], ids=["full", "io"])
def test_a_disk_that_fails_in_a_migration_leaves_the_old_schema(database, version, knows, error):
    Store.open(database).close()
    before = whole(database)
    knows(second())
    vfs = FaultyVFS("failing")
    try:
        for at in (1, 10, 1000):
            vfs.faults = [Fault("write", "-wal", error, at)]
            with pytest.raises(UnusableDatabaseError):
                Store.open(database, StoreSettings(vfs=vfs.name))
            assert vfs.faults[0].happened == 1
            assert whole(database) == before
    finally:
        vfs.unregister()
    assert is_said(database, version)
    assert applied(database) == BOTH


@pytest.mark.parametrize("at", range(1, len(STATEMENTS) + 1, 3))
def test_a_migration_that_is_killed_is_done_by_the_next_start(database, version, knows, at):
    Store.open(database).close()
    before, asked = whole(database), requests(database)
    process = begun(database, at)
    log = database.with_name("store.db-wal").stat().st_size
    process.kill()
    process.communicate()
    assert process.returncode == -9
    if at > STATEMENTS.index(BALLAST):
        assert log > 1 << 20  # half of it had reached the log
    assert whole(database) == before
    knows(second())
    assert is_said(database, version)
    assert requests(database) == asked
    assert applied(database) == BOTH


def test_a_killed_migration_is_no_obstacle_for_the_old_version(database, version):
    process = begun(database, len(STATEMENTS))
    process.kill()
    process.communicate()
    assert is_said(database, version)
    assert applied(database) == FIRST


def test_of_two_starts_at_once_one_migrates_and_the_other_is_refused(database, version, knows):
    knows(second())
    process = begun(database, len(STATEMENTS))
    with pytest.raises(AlreadyRunningError, match=f"process {process.pid}"):
        Store.open(database)
    process.communicate()
    assert process.returncode == 0
    assert applied(database) == BOTH
    assert is_said(database, version)


def released(changelog):
    """The versions that a changelog tells of as released."""
    return re.findall(r"^## \[v?(\d[^\]]*)\]", changelog, re.MULTILINE)


def test_released_versions_are_those_with_a_number():
    text = (
        "## [Unreleased]\n\n### Added\n\n## [1.10.0-rc.1] - 2027-01-02\n\n## [0.9.0]\n[1.0.0]: x\n"
    )
    assert released(text) == ["1.10.0-rc.1", "0.9.0"]


def test_every_released_version_has_its_database():
    """And the version that stands in pyproject.toml, which is the next to be released."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = {*released((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")), project["version"]}
    assert sorted(f"v{version}" for version in versions) == VERSIONS
    for version in VERSIONS:
        assert {path.name for path in (KEPT / version).iterdir()} == {"store.db", "said.json"}
