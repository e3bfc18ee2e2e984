from __future__ import annotations

import fcntl
import os
import secrets
import threading

import apsw
import pytest

from flue_grpc.errors import UnusableDatabaseError
from flue_grpc.store import backup, copying
from flue_grpc.store.connections import open_beside
from flue_grpc.store.store import Store
from flue_grpc.store.values import DEFAULT_SETTINGS, Draft, MessageQuery

from .faults import WRITE, Fault, FaultyVFS, full, io_error


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
def destination(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "copy.db"


def test_a_backup_is_one_private_file_with_everything_answered(
    path, store, session_id, destination
):
    before = os.umask(0)
    store.append_message(session_id, Draft("user", "needle 数据"))
    backup.backup(path, destination, DEFAULT_SETTINGS)
    os.umask(before)
    assert names(destination.parent) == ["copy.db"]
    assert destination.stat().st_mode & 0o777 == 0o600
    # Rollback mode: it can be read where no log can be made beside it.
    assert destination.read_bytes()[18:20] == b"\x01\x01"
    restored = Store.open(destination)
    assert [p.item.message.content for p in restored.search_messages(MessageQuery("数"))] == [
        "needle 数据"
    ]
    restored.close()


def test_a_backup_beside_writers_is_of_one_moment(path, store, session_id, destination):
    stop = threading.Event()

    def write():
        while not stop.is_set():
            store.append_messages(session_id, [Draft("user", "x" * 2000)] * 2)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            copy = destination.with_name(f"{number}.db")
            backup.backup(path, copy, DEFAULT_SETTINGS)
            connection = apsw.Connection(str(copy))
            # Each commit brings two messages and the session's time with them.
            (row,) = connection.execute(
                "SELECT count(*) % 2, max(created_at) = (SELECT updated_at FROM sessions), "
                "max(created_at) <= (SELECT last FROM store_clock) FROM messages"
            )
            assert row in ((0, 1, 1), (0, None, None))
            connection.close()
    finally:
        stop.set()
        writer.join()


def test_a_writer_beside_a_backup_never_starts_it_over(
    path, store, session_id, destination, monkeypatch
):
    monkeypatch.setattr("flue_grpc.limits.BACKUP_PAGES", 4)
    store.append_messages(session_id, [Draft("user", "x" * 4000)] * 20)
    done = []

    def write_meanwhile(copied, total):
        done.append((copied, total))
        store.append_message(session_id, Draft("user", "meanwhile"))

    backup.backup(path, destination, DEFAULT_SETTINGS, write_meanwhile)
    totals = {total for _, total in done}
    assert len(totals) == 1
    assert [copied for copied, _ in done] == sorted(copied for copied, _ in done)
    assert done[-1][0] == done[-1][1]
    assert len(done) == -(-done[-1][1] // 4)


def test_a_backup_without_a_server_leaves_nothing_beside_the_database(path, destination):
    Store.open(path).close()
    backup.backup(path, destination, DEFAULT_SETTINGS)
    assert names(path.parent) == ["lock", "store.db"]


def test_a_taken_destination_is_left_alone(path, store, destination):
    destination.write_text("precious")
    with pytest.raises(UnusableDatabaseError, match=r"copy\.db exists; choose another name"):
        backup.backup(path, destination, DEFAULT_SETTINGS)
    assert (names(destination.parent), destination.read_text()) == (["copy.db"], "precious")


def test_a_destination_that_cannot_be_made_is_told_in_words(path, store, tmp_path):
    copy = tmp_path / "nowhere" / "copy.db"
    with pytest.raises(UnusableDatabaseError) as caught:
        backup.backup(path, copy, DEFAULT_SETTINGS)
    assert str(caught.value) == f"{copy} cannot be created: No such file or directory"


@pytest.mark.parametrize("missing", [True, False])
def test_nothing_to_back_up_is_told_in_words(path, destination, missing):
    path.parent.mkdir()
    if not missing:
        path.touch()
    with pytest.raises(UnusableDatabaseError, match="is not there yet, or empty"):
        backup.backup(path, destination, DEFAULT_SETTINGS)
    assert names(destination.parent) == []


@pytest.mark.parametrize("error", [full(), io_error(WRITE)], ids=["full", "io"])
def test_a_backup_that_fails_on_the_way_leaves_nothing(
    path, store, destination, error, monkeypatch
):
    monkeypatch.setattr(secrets, "token_hex", lambda size: "0" * 2 * size)
    vfs = FaultyVFS()
    target = destination.with_name("store.db")
    vfs.faults = [Fault("write", f".partial-{os.getpid()}-00000000", error, at=3)]
    source = open_beside(path, DEFAULT_SETTINGS)
    from flue_grpc.store.values import StoreSettings

    with pytest.raises(UnusableDatabaseError, match="cannot be written"):
        copying.copy_database(source, target, StoreSettings(vfs=vfs.name))
    assert vfs.faults[0].happened == 1
    assert names(destination.parent) == []
    source.close()
    vfs.unregister()


def test_without_hard_links_a_file_is_renamed_and_nothing_replaced(
    path, store, destination, monkeypatch
):
    def no_links(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    backup.backup(path, destination, DEFAULT_SETTINGS)
    assert sessions_in(destination) == []
    with pytest.raises(UnusableDatabaseError, match="exists; choose another name"):
        backup.backup(path, destination, DEFAULT_SETTINGS)
    assert names(destination.parent) == ["copy.db"]


@pytest.mark.parametrize("name", ["store.db-journal", "store.db-wal", "store.db-shm", "lock"])
@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_name_that_belongs_to_the_database_is_no_destination(
    path, tmp_path, name, through_a_link
):
    Store.open(path).close()
    path.with_name("lock").unlink()
    directory = path.parent
    if through_a_link:
        directory = tmp_path / "link"
        directory.symlink_to(path.parent)
    with pytest.raises(UnusableDatabaseError, match="choose another name"):
        backup.backup(path, directory / name, DEFAULT_SETTINGS)
    assert names(path.parent) == ["store.db"]


def test_a_name_beside_which_a_log_was_left_is_no_destination(path, store, destination):
    left = destination.with_name("copy.db-wal")
    left.write_bytes(b"a log")
    with pytest.raises(UnusableDatabaseError, match=f"{left} is left of another database"):
        backup.backup(path, destination, DEFAULT_SETTINGS)
    assert names(destination.parent) == ["copy.db-wal"]


def test_what_a_killed_backup_left_is_removed_and_nothing_else(path, store, destination):
    abandoned = destination.with_name("copy.db.partial-77-0123abcd")
    running = destination.with_name("copy.db.partial-78-0123abcd")
    kept = [
        destination.with_name(name)
        for name in ("copy.db.partial", "copy.db.partial-1-x", "copy.db.restored", "other.db")
    ]
    for file in (abandoned, running, *kept):
        file.write_text("x")
    abandoned.with_name(f"{abandoned.name}-journal").write_text("x")
    with running.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        backup.backup(path, destination, DEFAULT_SETTINGS)
    assert names(destination.parent) == sorted(file.name for file in (destination, running, *kept))
