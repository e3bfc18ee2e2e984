from __future__ import annotations

from contextlib import suppress
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
from flue_grpc.store.values import Draft, EntryDraft, MemoryQuery, MessageQuery, StoreSettings

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


@pytest.mark.parametrize(
    "read",
    [
        lambda store: store.list_messages("s1"),
        lambda store: store.list_sessions("all"),
        lambda store: store.search_messages(MessageQuery("before")),
        lambda store: store.scope_memory("_global"),
        lambda store: store.search_memory(MemoryQuery("kept", ("_global",))),
    ],
    ids=["messages", "sessions", "search", "memory", "memory-search"],
)
def test_a_failed_read_is_an_error_of_that_read(path, vfs, faulty, items, read):
    faulty.write_memory_entry(EntryDraft("_global", "kept"))
    faulty.close()
    failed = 0
    for at in range(1, 40):
        again = Store.open(path, StoreSettings(vfs=vfs.name))
        vfs.faults = [Fault("read", "", io_error(READ), at)]
        try:
            assert len(items(read(again))) == 1
        except DatabaseIoError:
            failed += 1
        assert vfs.faults[0].happened == (failed == at)
        vfs.faults = []
        assert (again.state, len(items(read(again)))) == ("serving", 1)
        again.close()
        if failed < at:
            break
    assert 0 < failed < 39


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


KINDS = [
    pytest.param(operation, suffix, code, is_torn, id=f"{name}-{operation}-{suffix or 'db'}")
    for name, operation, suffix, code, is_torn in (
        ("failed", "read", "", READ, False),
        ("failed", "read", "-wal", READ, False),
        ("failed", "write", "", WRITE, False),
        ("failed", "write", "-wal", WRITE, False),
        ("torn", "write", "", WRITE, True),
        ("torn", "write", "-wal", WRITE, True),
        ("failed", "sync", "", SYNC, False),
        ("failed", "sync", "-wal", SYNC, False),
    )
]


ROUNDS = 3


def mixed(store, items):
    """Append, copy the log into the database and read, by turns.

    Return what was answered, and what was not. No read may fail but by a fault, and none
    may show anything but what was answered.
    """
    answered, unanswered = [], []
    for place in range(ROUNDS):
        store._database.writer._checkpoints._next = 4
        content = f"message {place} " * 200
        try:
            store.append_message("s1", Draft("user", content))
            answered.append(content)
        except (DatabaseIoError, StoreStoppedError):
            unanswered.append(content)
        with suppress(DatabaseIoError, StoreStoppedError):
            # Begins when the log has been copied, so that reads find it where it was before.
            store._database.writer.write(lambda _batch: None)
        with suppress(DatabaseIoError):
            assert contents(items, store) == answered
        with suppress(DatabaseIoError):
            found = items(store.search_messages(MessageQuery(f"message {place}")))
            assert {result.message.content for result in found} == {content} & {*answered}
    return answered, unanswered


def opened_for(path, vfs):
    store = Store.open(path, StoreSettings(vfs=vfs.name))
    store.create_session("s1", "t")
    vfs.calls.clear()
    return store


@pytest.mark.parametrize(("operation", "suffix", "code", "is_torn"), KINDS)
def test_every_answered_write_survives_a_fault_at_every_place(
    path, vfs, items, record_property, *, operation, suffix, code, is_torn
):
    """Fail the n-th read, write or sync, for each n that a sound run has."""
    sound = opened_for(path, vfs)
    assert len(mixed(sound, items)[0]) == ROUNDS
    places = vfs.calls[operation, suffix]
    sound.close()
    assert places >= ROUNDS
    record_property("faults", places)
    for at in range(1, places + 1):
        here = path.parent / str(at) / "store.db"
        store = opened_for(here, vfs)
        fault = Fault(operation, suffix, io_error(code), at, is_torn=is_torn)
        vfs.faults = [fault]
        answered, unanswered = mixed(store, items)
        vfs.faults = []
        assert fault.happened == 1, at
        assert store.state == ("stopped" if operation == "sync" else "serving")
        found = reopened(here, store, items)
        assert [content for content in found if content not in unanswered] == answered
        assert set(found) <= {*unanswered, *answered}


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
