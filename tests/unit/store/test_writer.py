from __future__ import annotations

import threading

import apsw
import pytest

from flue_grpc import limits
from flue_grpc.cancel import NEVER
from flue_grpc.errors import (
    CancelledError,
    DatabaseBusyError,
    DatabaseCorruptError,
    DeadlineError,
    DiskFullError,
    DrainingError,
    SessionExistsError,
    SessionNotFoundError,
    StoreReadOnlyError,
    StoreStoppedError,
)
from flue_grpc.store import messages, sessions
from flue_grpc.store.connections import open_writer
from flue_grpc.store.values import DEFAULT_SETTINGS, Draft
from tests.waiting import wait_until


def append(content, session_id="s1"):
    return messages.NewMessages(session_id, (Draft("user", content),)).make


class Held:
    """Keeps the writer at work until released, so that what comes meanwhile waits together."""

    def __init__(self, store):
        self.writer = store._database.writer
        self._release = threading.Event()
        self._begun = threading.Event()
        self._threads = []
        self.results = {}

    def __enter__(self):
        self.submit("hold", lambda _: self._begun.set() or self._release.wait())
        self._begun.wait()
        return self

    def submit(self, name, operation, cancel=NEVER):
        def call():
            try:
                self.results[name] = self.writer.write(operation, cancel)
            except Exception as error:  # noqa: BLE001  (it is what the test looks at)
                self.results[name] = error

        before = self.writer._queue.qsize()
        thread = threading.Thread(target=call)
        thread.start()
        self._threads.append(thread)
        # Queued in the order of the calls, so that results are certain.
        if name != "hold":
            wait_until(lambda: self.writer._queue.qsize() > before)

    def __exit__(self, *_):
        self._release.set()
        for thread in self._threads:
            thread.join()


def test_a_lone_write_is_committed_at_once(store, session_id):
    before = store.commits
    for number in range(5):
        store.append_message(session_id, Draft("user", str(number)))
    assert store.commits == before + 5


def test_writes_that_wait_together_are_committed_together(store, session_id, items):
    before = store.commits
    with Held(store) as held:
        for number in range(20):
            held.submit(number, append(str(number)))
    assert store.commits == before + 2
    assert [held.results[number][0].id for number in range(20)] == list(range(1, 21))
    listed = [message.content for message in items(store.list_messages(session_id))]
    assert listed == [str(number) for number in range(20)]


def test_a_group_is_bounded(store, session_id, monkeypatch):
    monkeypatch.setattr(limits, "GROUP_COMMIT_MAX", 4)
    before = store.commits
    with Held(store) as held:
        for number in range(10):
            held.submit(number, append(str(number), session_id))
    assert store.commits == before + 1 + 3


def test_one_that_fails_undoes_only_itself(store, session_id, items):
    def half(batch):
        append("to be undone")(batch)
        raise SessionNotFoundError("there is no such session")

    with Held(store) as held:
        held.submit("first", append("first"))
        held.submit("half", half)
        held.submit("taken", sessions.NewSession(session_id, "again").make)
        held.submit("last", append("last"))
    assert isinstance(held.results["half"], SessionNotFoundError)
    assert isinstance(held.results["taken"], SessionExistsError)
    listed = [message.content for message in items(store.list_messages(session_id))]
    assert listed == ["first", "last"]
    # Rolled back like the rest, so the index stays right.
    assert store._database.writer.write(
        lambda batch: batch.row("SELECT count(*) FROM message_index_docsize")
    ) == (2,)


def test_one_that_ends_the_transaction_takes_no_other_with_it(store, session_id, items):
    def ruin(batch):
        append("to be undone")(batch)
        batch.execute("ROLLBACK")
        raise apsw.FullError("no room")

    with Held(store) as held:
        held.submit("first", append("first"))
        held.submit("ruin", ruin)
        held.submit("last", append("last"))
    assert isinstance(held.results["ruin"], DiskFullError)
    assert [m.content for m in items(store.list_messages(session_id))] == ["first", "last"]


def test_a_defect_in_one_is_told_to_its_caller_alone(store, session_id):
    with Held(store) as held:
        held.submit("defect", lambda _: {}["missing"])
        held.submit("good", append("x", session_id))
    assert isinstance(held.results["defect"], KeyError)
    assert held.results["good"][0].content == "x"
    assert store.state == "serving"


def test_a_failed_commit_fails_the_whole_group(store, session_id, items):
    def late(batch):
        # Looked at only when the transaction is committed.
        batch.execute("PRAGMA defer_foreign_keys = TRUE")
        batch.execute(
            "INSERT INTO messages (session_id, created_at, role, content) VALUES ('?', 1, 'user', 'x')"
        )

    with Held(store) as held:
        held.submit("first", append("first"))
        held.submit("late", late)
        held.submit("unknown", sessions.NewSession(session_id, "again").make)
    assert isinstance(held.results["first"], apsw.ConstraintError)
    assert isinstance(held.results["late"], apsw.ConstraintError)
    assert held.results["first"] is not held.results["late"]
    assert isinstance(held.results["unknown"], SessionExistsError)
    assert items(store.list_messages(session_id)) == []
    assert store.append_message(session_id, Draft("user", "next")).content == "next"


def test_a_failed_sync_within_a_group_acknowledges_none_of_it(store, session_id, items):
    def unsure(_):
        error = apsw.IOError("injected")
        error.extendedresult = apsw.SQLITE_IOERR_FSYNC
        raise error

    with Held(store) as held:
        held.submit("first", append("first"))
        held.submit("unsure", unsure)
        held.submit("last", append("last"))
    assert {type(held.results[name]) for name in ("first", "unsure", "last")} == {StoreStoppedError}
    assert (store.state, items(store.list_messages(session_id))) == ("stopped", [])


class Cancelled:
    def __init__(self, error):
        self.error = error

    def is_cancelled(self):
        return True

    def check(self):
        raise self.error("late")


@pytest.mark.parametrize("error", [CancelledError, DeadlineError])
def test_a_call_that_is_over_before_its_turn_is_dropped_whole(store, session_id, items, error):
    with Held(store) as held:
        held.submit("late", append("late"), Cancelled(error))
        held.submit("good", append("good"))
    assert isinstance(held.results["late"], error)
    assert [m.content for m in items(store.list_messages(session_id))] == ["good"]


def test_closing_finishes_what_waits(store, session_id, path):
    with Held(store) as held:
        for number in range(5):
            held.submit(number, append(str(number)))
        closer = threading.Thread(target=store.close)
        closer.start()
        wait_until(lambda: store._database.writer._is_closed)
        with pytest.raises(DrainingError):
            store.append_message(session_id, Draft("user", "too late"))
    closer.join()
    assert [held.results[number][0].id for number in range(5)] == [1, 2, 3, 4, 5]
    assert not path.with_name("store.db-wal").exists()


def test_a_lock_of_another_process_is_busy_and_then_over(store, session_id, path, monkeypatch):
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    store._database.writer._connection.set_busy_timeout(20)
    with pytest.raises(DatabaseBusyError):
        store.append_message(session_id, Draft("user", "x"))
    other.execute("ROLLBACK")
    other.close()
    assert store.append_message(session_id, Draft("user", "x")).id == 1
    assert store.state == "serving"


def test_a_database_that_becomes_read_only_serves_reads_until_it_can_be_written(store, session_id):
    connection = store._database.writer._connection
    connection.pragma("query_only", value=True)
    with pytest.raises(StoreReadOnlyError):
        store.append_message(session_id, Draft("user", "x"))
    assert store.state == "read_only"
    assert store.get_session(session_id).id == session_id
    connection.pragma("query_only", value=False)
    assert store.append_message(session_id, Draft("user", "x")).id == 1
    assert store.state == "serving"


def test_damage_that_is_found_stops_writes_and_no_reads(store, session_id):
    def damaged(_):
        raise apsw.CorruptError("a page is wrong")

    with pytest.raises(DatabaseCorruptError):
        store._database.writer.write(damaged)
    assert store.state == "corrupt"
    with pytest.raises(DatabaseCorruptError):
        store.append_message(session_id, Draft("user", "x"))
    assert store.get_session(session_id).id == session_id


def test_the_disk_being_full_is_told_and_then_over(store, session_id, items):
    connection = store._database.writer._connection
    connection.pragma("max_page_count", connection.pragma("page_count") + 2)
    with pytest.raises(DiskFullError):
        store.append_message(session_id, Draft("user", "x" * 50_000))
    assert items(store.list_messages(session_id)) == []
    connection.pragma("max_page_count", 1_000_000)
    assert store.append_message(session_id, Draft("user", "x" * 50_000)).id == 1
    assert store.state == "serving"


def test_a_full_disk_fails_only_what_does_not_fit(store, session_id, items):
    connection = store._database.writer._connection
    connection.pragma("max_page_count", connection.pragma("page_count") + 4)
    with Held(store) as held:
        held.submit("small", append("small"))
        held.submit("large", append("x" * 100_000))
        held.submit("last", append("last"))
    assert isinstance(held.results["large"], DiskFullError)
    assert [m.content for m in items(store.list_messages(session_id))] == ["small", "last"]


def log_pages(path):
    return max(0, path.with_name("store.db-wal").stat().st_size - 32) // (4096 + 24)


def test_the_log_starts_over_while_the_writer_is_busy(store, session_id, path, monkeypatch):
    monkeypatch.setattr(limits, "CHECKPOINT_PAGES", 50)
    store._database.writer._checkpoints._next = 50
    for _ in range(100):
        store.append_message(session_id, Draft("user", "word " * 1000))
    assert log_pages(path) < 150


def test_the_log_is_folded_in_when_nothing_comes_for_a_while(path, monkeypatch):
    from flue_grpc.store.store import Store

    monkeypatch.setattr(limits, "CHECKPOINT_IDLE_SECONDS", 0.01)
    opened = Store.open(path)
    opened.create_session("s", "t")
    checkpoints = opened._database.writer._checkpoints
    wait_until(lambda: not checkpoints.is_due_when_idle)
    # The database file alone has it all now.
    alone = path.with_name("alone.db")
    alone.write_bytes(path.read_bytes())
    connection = open_writer(alone, DEFAULT_SETTINGS)
    assert connection.execute("SELECT id FROM sessions").fetchall() == [("s",)]
    connection.close()
    opened.close()


def test_a_reader_that_stays_cannot_hold_writes_up(store, session_id, path, monkeypatch):
    monkeypatch.setattr(limits, "CHECKPOINT_FORCE_PAGES", 20)
    monkeypatch.setattr(limits, "CHECKPOINT_WAIT_MS", 1)
    store._database.writer._checkpoints._next_restart = 20
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM sessions").fetchall()
    attempts = []
    checkpoints = store._database.writer._checkpoints
    restart = checkpoints._restart
    monkeypatch.setattr(checkpoints, "_restart", lambda: attempts.append(1) or restart())
    for _ in range(40):
        store.append_message(session_id, Draft("user", "word " * 1000))
    assert log_pages(path) > 40
    assert 1 <= len(attempts) <= log_pages(path) // 20 + 1
    reader.close()
    for _ in range(40):
        store.append_message(session_id, Draft("user", "word " * 1000))
    assert store._database.writer._checkpoints._pages < 40
