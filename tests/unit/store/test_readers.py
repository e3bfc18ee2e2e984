from __future__ import annotations

import threading
from contextlib import ExitStack

import apsw
import pytest

from flue_grpc.errors import CancelledError, DeadlineError, DrainingError
from flue_grpc.store.connections import open_reader
from flue_grpc.store.health import Health
from flue_grpc.store.readers import Readers
from flue_grpc.store.store import Store
from flue_grpc.store.values import DEFAULT_SETTINGS, Draft, MessageQuery
from flue_grpc.text.match import Verifier

PATIENCE = 20.0
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


class After:
    """Cancels once it was asked a number of times."""

    def __init__(self, count, error=CancelledError):
        self.left = count
        self.error = error

    def is_cancelled(self):
        self.left -= 1
        return self.left < 0

    def check(self):
        if self.left < 0:
            raise self.error("enough")


class Impatient(After):
    """Cancels once it was checked a number of times."""

    def check(self):
        self.left -= 1
        super().check()


@pytest.fixture
def readers(path, store):
    lent = Readers(lambda: open_reader(path, DEFAULT_SETTINGS), Health())
    yield lent
    lent.close()


@pytest.mark.parametrize("error", [CancelledError, DeadlineError])
def test_cancelled_sql_stops_and_leaves_the_connection_usable(readers, error):
    with pytest.raises(error), readers.reading(After(3, error)) as connection:
        connection.execute(ENDLESS).fetchall()
    with readers.reading() as connection:
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_a_cancelled_call_reads_nothing(store, session_id):
    with pytest.raises(CancelledError):
        store.get_session(session_id, After(-1))


def test_a_search_is_cancelled_within_its_sql(store, session_id):
    store.append_messages(session_id, [Draft("user", f"common {number}") for number in range(1000)])
    cancel = After(2)
    with pytest.raises(CancelledError):
        list(store.search_messages(MessageQuery("common"), cancel=cancel))
    assert cancel.left == -1


def test_a_search_is_cancelled_between_the_texts_that_it_verifies(store, session_id, monkeypatch):
    monkeypatch.setattr("flue_grpc.limits.SQL_PROGRESS_STEPS", 10**9)
    words = " ".join(f"word{number}" for number in range(100))
    store.append_messages(session_id, [Draft("user", words)] * 20)
    verified = []
    accepts = Verifier.accepts
    monkeypatch.setattr(
        Verifier, "accepts", lambda *arguments: verified.append(accepts(*arguments)) or True
    )
    # Two readings ask before the first text.
    with pytest.raises(CancelledError):
        list(store.search_messages(MessageQuery(words), cancel=Impatient(5)))
    assert len(verified) == 3


def test_a_list_is_cancelled_between_its_batches(store, session_id, monkeypatch):
    monkeypatch.setattr("flue_grpc.limits.READ_BATCH_ROWS", 2)
    for _ in range(6):
        store.append_message(session_id, Draft("user", "x"))
    cancel = After(0)
    cancel.left = 1
    listing = store.list_messages(session_id, cancel=cancel)
    next(listing)
    next(listing)
    cancel.left = -1
    with pytest.raises(CancelledError):
        next(listing)


def test_connections_are_used_again_and_few_are_kept(readers, monkeypatch):
    monkeypatch.setattr("flue_grpc.limits.READERS_IDLE_MAX", 2)
    with readers.reading() as first:
        pass
    with readers.reading() as second:
        assert second is first
        with readers.reading() as third, readers.reading() as fourth:
            assert len({first, third, fourth}) == 3
    assert len(readers._idle) == 2


def test_connections_are_bounded_and_a_call_may_give_up_waiting(path, store, monkeypatch):
    monkeypatch.setattr("flue_grpc.limits.READERS_MAX", 2)
    monkeypatch.setattr("flue_grpc.limits.READERS_WAIT_SECONDS", 0.001)
    lent = Readers(lambda: open_reader(path, DEFAULT_SETTINGS), Health())
    with (
        lent.reading(),
        lent.reading(),
        pytest.raises(CancelledError),
        lent.reading(Impatient(3)),
    ):
        pytest.fail("a third connection was lent")
    with lent.reading(), lent.reading():
        pass
    lent.close()


def test_a_connection_whose_statement_was_left_open_is_not_lent_again(readers, session_id):
    held = []
    with readers.reading() as first:
        held.append(first.execute("SELECT * FROM sessions UNION ALL SELECT * FROM sessions"))
        next(held[0])
    with readers.reading() as second:
        assert second is not first


def test_readers_cannot_write(readers):
    from flue_grpc.errors import StoreReadOnlyError

    with pytest.raises(StoreReadOnlyError), readers.reading() as connection:
        connection.execute("DELETE FROM sessions")


class Telling:
    """Never cancels, and tells that it was asked."""

    def __init__(self):
        self.asked = threading.Event()

    def is_cancelled(self):
        self.asked.set()
        return False

    def check(self):
        pass


def read_endlessly(readers, cancel, outcome):
    try:
        with readers.reading(cancel) as connection:
            connection.execute(ENDLESS).fetchall()
    except DrainingError as error:
        outcome.append(error)


def test_closing_stops_what_still_reads(readers):
    cancel, outcome = Telling(), []
    reader = threading.Thread(target=read_endlessly, args=(readers, cancel, outcome))
    reader.start()
    assert cancel.asked.wait(PATIENCE)
    readers.close()
    reader.join(PATIENCE)
    assert len(outcome) == 1
    with pytest.raises(DrainingError), readers.reading():
        pass


def test_closing_stops_what_has_not_begun_to_read(readers):
    with ExitStack() as stack:
        stack.enter_context(pytest.raises(DrainingError))
        connection = stack.enter_context(readers.reading())
        readers.close()
        connection.execute(ENDLESS).fetchall()


def test_a_closed_store_refuses_every_call(path):
    store = Store.open(path)
    store.create_session("s", "t")
    store.close()
    for call in (
        lambda: store.get_session("s"),
        lambda: store.create_session("x", "t"),
        lambda: list(store.list_sessions("all")),
        lambda: list(store.search_messages(MessageQuery("x"))),
    ):
        with pytest.raises(DrainingError):
            call()


def test_a_defect_of_ours_is_not_disguised(readers):
    with pytest.raises(apsw.SQLError), readers.reading() as connection:
        connection.execute("SELECT no_such_column")
