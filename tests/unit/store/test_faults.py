from __future__ import annotations

from time import sleep

import apsw
import pytest

from flue_grpc.errors import (
    DatabaseCorruptError,
    DatabaseIoError,
    DiskFullError,
    StoreStoppedError,
    UnusableDatabaseError,
)
from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft, EntryDraft, MessageQuery, StoreSettings

from .faults import READ, SYNC, WRITE, Fault, FaultyVFS, full, io_error


@pytest.fixture
def vfs():
    faulty = FaultyVFS()
    yield faulty
    faulty.unregister()


@pytest.fixture
def faulty(path, vfs):
    """A Store with one session and one message, on a VFS that can fail."""
    opened = Store.open(path, StoreSettings(vfs=vfs.name))
    opened.create_session("s1", "t")
    opened.append_message("s1", Draft("user", "before"))
    yield opened
    vfs.faults = []
    opened.close()


def contents(items, store):
    return [message.content for message in items(store.list_messages("s1"))]


def reopened(path, faulty, items):
    """What the database says after a restart, and that it is sound."""
    faulty.close()
    again = Store.open(path)
    try:
        return contents(items, again)
    finally:
        again.close()
        connection = apsw.Connection(str(path))
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()


def test_a_failed_sync_of_the_log_stops_all_writes_and_no_reads(path, vfs, faulty, items):
    vfs.faults = [Fault("sync", "-wal", io_error(SYNC))]
    with pytest.raises(StoreStoppedError):
        faulty.append_message("s1", Draft("user", "not answered"))
    assert faulty.state == "stopped"
    for write in (
        lambda: faulty.append_message("s1", Draft("user", "later")),
        lambda: faulty.create_session("", "t"),
        lambda: faulty.write_memory_entry(EntryDraft("_global", "x")),
        lambda: faulty.delete_session("s1"),
    ):
        with pytest.raises(StoreStoppedError):
            write()
    assert contents(items, faulty) == ["before"]
    assert len(items(faulty.search_messages(MessageQuery("before")))) == 1
    # Unanswered, so it may be there whole after recovery, or not at all.
    assert reopened(path, faulty, items) in (["before"], ["before", "not answered"])


def test_after_a_failed_sync_nothing_is_copied_from_the_log_any_more(path, vfs, faulty):
    vfs.faults = [Fault("sync", "-wal", io_error(SYNC))]
    with pytest.raises(StoreStoppedError):
        faulty.append_message("s1", Draft("user", "not answered"))
    before = path.read_bytes()
    faulty.close()
    assert path.read_bytes() == before
    assert path.with_name("store.db-wal").stat().st_size > 0


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize(
    ("error", "is_torn"),
    [(full(), False), (io_error(WRITE), False), (full(), True), (io_error(WRITE), True)],
    ids=["full", "io", "torn-full", "torn-io"],
)
def test_a_failed_write_of_the_log_is_rolled_back_and_then_over(
    vfs, faulty, items, at, *, error, is_torn
):
    vfs.faults = [Fault("write", "-wal", error, at, is_torn=is_torn)]
    expected = DiskFullError if isinstance(error, apsw.FullError) else DatabaseIoError
    with pytest.raises(expected):
        faulty.append_message("s1", Draft("user", "lost " * 5000))
    assert vfs.faults[0].happened == 1
    assert (faulty.state, contents(items, faulty)) == ("serving", ["before"])
    faulty.append_message("s1", Draft("user", "after"))
    assert len(items(faulty.search_messages(MessageQuery("lost")))) == 0
    assert contents(items, faulty) == ["before", "after"]


def test_a_failed_read_is_an_error_of_that_read(path, vfs, faulty, items, monkeypatch):
    faulty.close()
    again = Store.open(path, StoreSettings(vfs=vfs.name))
    vfs.faults = [Fault("read", "", io_error(READ), times=1000)]
    with pytest.raises(DatabaseIoError):
        contents(items, again)
    vfs.faults = []
    assert (again.state, contents(items, again)) == ("serving", ["before"])
    again.close()


def test_a_checkpoint_that_cannot_sync_the_database_stops_writes(
    path, vfs, faulty, items, monkeypatch
):
    faulty._database.writer._checkpoints._next = 1
    vfs.faults = [Fault("sync", "", io_error(SYNC))]
    faulty.append_message("s1", Draft("user", "answered"))
    while faulty.state == "serving":
        sleep(0)
    with pytest.raises(StoreStoppedError):
        faulty.append_message("s1", Draft("user", "again"))
    assert vfs.faults[0].happened == 1
    assert reopened(path, faulty, items)[:2] == ["before", "answered"]


def test_a_checkpoint_that_cannot_write_is_tried_again(path, vfs, faulty, items):
    faulty._database.writer._checkpoints._next = 1
    vfs.faults = [Fault("write", "", io_error(WRITE))]
    for number in range(20):
        faulty.append_message("s1", Draft("user", str(number)))
    assert vfs.faults[0].happened == 1
    assert reopened(path, faulty, items) == ["before", *map(str, range(20))]


def test_full_durability_syncs_each_commit_and_normal_none(path, vfs):
    for durability, expected in (("full", 5), ("normal", 0)):
        opened = Store.open(path, StoreSettings(durability=durability, vfs=vfs.name))
        session = opened.create_session("", "t").id
        vfs.calls.clear()
        for _ in range(5):
            opened.append_message(session, Draft("user", "x"))
        assert vfs.calls["sync", "-wal"] == expected
        opened.close()


def test_faults_while_opening_are_told_in_words(path, vfs):
    Store.open(path).close()
    vfs.faults = [Fault("read", "", io_error(READ), times=1000)]
    with pytest.raises(UnusableDatabaseError, match="cannot be opened"):
        Store.open(path, StoreSettings(vfs=vfs.name))
    vfs.faults = []
    Store.open(path, StoreSettings(vfs=vfs.name)).close()


def test_every_answered_write_survives_faults_at_every_place(path, vfs, items):
    """Fail the n-th write or sync, for each n, and compare what was answered with what is there."""
    for number in range(1, 60):
        here = path.parent / str(number) / "store.db"
        opened = Store.open(here, StoreSettings(vfs=vfs.name))
        opened.create_session("s1", "t")
        opened._database.writer._checkpoints._next = 4
        kinds = (("write", "-wal", WRITE), ("sync", "-wal", SYNC), ("write", "", WRITE))
        operation, suffix, code = kinds[number % 3]
        is_torn = number % 2 == 1
        vfs.faults = [Fault(operation, suffix, io_error(code), at=number // 6 + 1, is_torn=is_torn)]
        answered, unanswered = [], set()
        for place in range(6):
            content = f"message {place} " * 200
            try:
                opened.append_message("s1", Draft("user", content))
                answered.append(content)
            except (DatabaseIoError, StoreStoppedError):
                unanswered.add(content)
        vfs.faults = []
        found = reopened(here, opened, items)
        assert [content for content in found if content not in unanswered] == answered
        assert set(found) <= unanswered.union(answered)


def damage(path, needle):
    """Overwrite the page that holds ``needle``."""
    data = bytearray(path.read_bytes())
    start = data.index(needle) // 4096 * 4096
    data[start : start + 4096] = b"\xff" * 4096
    path.write_bytes(data)


def test_a_damaged_page_is_data_loss_for_what_needs_it_and_nothing_else(path, items):
    opened = Store.open(path)
    opened.create_session("s1", "t")
    opened.create_session("s2", "t")
    for number in range(100):
        opened.append_message("s1", Draft("user", f"needle{number} " * 30))
    opened.append_message("s2", Draft("user", "far away " * 1000))
    opened.close()
    damage(path, b"needle50 ")
    before = path.read_bytes()
    opened = Store.open(path)
    with pytest.raises(DatabaseCorruptError):
        items(opened.list_messages("s1"))
    assert opened.state == "corrupt"
    assert len(items(opened.list_messages("s2"))) == 1
    assert opened.get_session("s1").id == "s1"
    with pytest.raises(DatabaseCorruptError):
        opened.append_message("s2", Draft("user", "x"))
    opened.close()
    assert path.read_bytes() == before


def test_a_damaged_first_page_is_refused_at_the_start(path):
    Store.open(path).close()
    data = bytearray(path.read_bytes())
    data[100:4096] = b"\xff" * 3996
    path.write_bytes(data)
    with pytest.raises(UnusableDatabaseError, match="is damaged; run `flue-grpc check`"):
        Store.open(path)
    assert path.read_bytes() == data
