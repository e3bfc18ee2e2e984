"""Restoring puts a backup in the place of a database at rest, which is kept."""

from __future__ import annotations

import shutil
import stat

import apsw
import pytest

from flue_grpc.errors import UnusableDatabaseError
from flue_grpc.store import backup, files
from flue_grpc.store.store import Store
from flue_grpc.store.values import DEFAULT_SETTINGS


def names(directory):
    return sorted(entry.name for entry in directory.iterdir())


def sessions_in(path):
    connection = apsw.Connection(str(path))
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [row[0] for row in connection.execute("SELECT id FROM sessions ORDER BY id")]
    finally:
        connection.close()


@pytest.fixture
def source(tmp_path):
    """A backup with one session, made of another Store."""
    other = tmp_path / "other" / "store.db"
    opened = Store.open(other)
    opened.create_session("restored", "t")
    opened.close()
    copy = tmp_path / "backup.db"
    backup.backup(other, copy, DEFAULT_SETTINGS)
    return copy


def restore(source, path):
    with files.claim(path):
        return backup.restore(source, path, DEFAULT_SETTINGS)


def test_a_restored_database_serves_and_the_replaced_one_is_kept(path, source):
    store = Store.open(path)
    store.create_session("replaced", "t")
    store.close()
    kept = restore(source, path)
    assert kept == path.with_name("store.db.before-restore")
    assert sessions_in(kept) == ["replaced"]
    assert names(path.parent) == ["lock", "store.db", "store.db.before-restore"]
    assert {entry.stat().st_mode & 0o777 for entry in path.parent.iterdir()} == {0o600}
    store = Store.open(path)
    assert [p.item.id for p in store.list_sessions("all")] == ["restored"]
    store.close()


def test_a_restore_into_an_empty_directory_keeps_nothing(path, source):
    assert restore(source, path) is None
    assert names(path.parent) == ["lock", "store.db"]
    assert sessions_in(path) == ["restored"]


def test_each_replaced_database_is_kept_under_its_own_name(path, source):
    restore(source, path)
    assert restore(source, path).name == "store.db.before-restore"
    assert restore(source, path).name == "store.db.before-restore.2"


def test_the_log_of_a_crashed_database_is_folded_into_the_kept_one(path, source):
    store = Store.open(path)
    store.create_session("in the log", "t")
    log = path.with_name("store.db-wal").read_bytes()
    body = path.read_bytes()
    store.close()
    path.write_bytes(body)
    path.with_name("store.db-wal").write_bytes(log)
    kept = restore(source, path)
    assert names(path.parent) == ["lock", "store.db", "store.db.before-restore"]
    assert (sessions_in(kept), sessions_in(path)) == (["in the log"], ["restored"])


def test_a_database_that_cannot_be_opened_is_kept_with_its_log(path, source):
    path.parent.mkdir(mode=0o700)
    path.write_text("garbage " * 1000)
    path.with_name("store.db-wal").write_text("a log")
    path.with_name("store.db-shm").write_text("its index")
    path.chmod(0o644)
    kept = restore(source, path)
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    kept_names = ["store.db.before-restore", "store.db.before-restore-wal"]
    assert names(path.parent) == ["lock", "store.db", *kept_names]
    assert kept.read_text() == "garbage " * 1000
    assert kept.with_name("store.db.before-restore-wal").read_text() == "a log"
    assert sessions_in(path) == ["restored"]


@pytest.mark.parametrize("name", ["store.db.restored", "store.db.partial-7-0123abcd"])
def test_a_source_beside_the_database_is_never_removed_whatever_its_name(path, source, name):
    Store.open(path).close()
    beside = path.with_name(name)
    shutil.copy(source, beside)
    before = beside.read_bytes()
    restore(beside, path)
    assert sessions_in(path) == ["restored"]
    assert beside.read_bytes() == before
    assert names(path.parent) == sorted(["lock", "store.db", "store.db.before-restore", name])
    path.unlink()
    beside.write_text("damaged")
    with pytest.raises(UnusableDatabaseError):
        restore(beside, path)
    assert beside.read_text() == "damaged"


def test_a_log_beside_the_source_is_restored_and_left(path, tmp_path):
    other = tmp_path / "other" / "store.db"
    running = Store.open(other)
    running.create_session("in the log", "t")
    copy = tmp_path / "copy.db"
    log = tmp_path / "copy.db-wal"
    shutil.copy(other, copy)
    shutil.copy(other.with_name("store.db-wal"), log)
    running.close()
    before = copy.read_bytes(), log.read_bytes()
    restore(copy, path)
    assert (copy.read_bytes(), log.read_bytes()) == before
    assert sessions_in(path) == ["in the log"]


@pytest.mark.parametrize("kind", ["missing", "empty", "text", "foreign", "newer", "damaged"])
def test_a_source_that_is_no_sound_store_replaces_nothing(path, source, kind):
    Store.open(path).close()
    before = path.read_bytes()
    if kind == "missing":
        source.unlink()
    elif kind in ("empty", "text"):
        source.write_bytes(b"" if kind == "empty" else b"text " * 1000)
    elif kind == "damaged":
        data = bytearray(source.read_bytes())
        place = data.index(b"restored") // 4096 * 4096
        data[place : place + 4096] = b"\xff" * 4096
        source.write_bytes(data)
    else:
        change = (
            "DROP TABLE flue_migrations"
            if kind == "foreign"
            else "UPDATE flue_migrations SET version = 99"
        )
        connection = apsw.Connection(str(source))
        connection.execute(change)
        if kind == "foreign":
            connection.execute("ALTER TABLE sessions RENAME TO others")
        connection.close()
    with pytest.raises(UnusableDatabaseError):
        restore(source, path)
    assert (path.read_bytes(), names(path.parent)) == (before, ["lock", "store.db"])


def test_a_backup_of_the_original_can_be_restored_and_is_adopted_then(path, tmp_path):
    source = tmp_path / "original.db"
    connection = apsw.Connection(str(source))
    connection.execute(
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, title, created_at, updated_at);"
        "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id, role, content, created_at);"
        "INSERT INTO sessions VALUES ('old', 't', 1, 2)"
    )
    connection.close()
    restore(source, path)
    store = Store.open(path)
    assert store.get_session("old").updated_at == 2_000_000
    store.close()


def test_a_source_with_a_log_of_its_own_is_restored_with_it(path, tmp_path):
    other = tmp_path / "other" / "store.db"
    running = Store.open(other)
    running.create_session("in the log", "t")
    restore(other, path)
    running.close()
    assert sessions_in(path) == ["in the log"]
