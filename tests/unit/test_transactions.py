from __future__ import annotations

from contextlib import closing

import apsw
import pytest

from flue_grpc.transactions import transaction


@pytest.fixture
def db():
    with closing(apsw.Connection(":memory:")) as connection:
        connection.execute("CREATE TABLE t (a PRIMARY KEY)")
        yield connection


def rows(db):
    return [a for (a,) in db.execute("SELECT a FROM t")]


def test_what_is_done_within_is_committed(db):
    with transaction(db):
        db.execute("INSERT INTO t VALUES (1)")
        assert db.in_transaction
    assert (rows(db), db.in_transaction) == ([1], False)


def test_what_fails_is_undone_and_raised(db):
    with pytest.raises(apsw.SQLError, match="no such table"), transaction(db):
        db.execute("INSERT INTO t VALUES (1); INSERT INTO nowhere VALUES (1)")
    assert (rows(db), db.in_transaction) == ([], False)


def test_what_sqlite_has_undone_by_itself_is_raised_as_it_was(db):
    with transaction(db):
        db.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(apsw.ConstraintError, match="UNIQUE"), transaction(db):
        db.execute("INSERT OR ROLLBACK INTO t VALUES (1)")
    assert (rows(db), db.in_transaction) == ([1], False)


def test_a_commit_that_fails_is_undone(db):
    db.set_commit_hook(lambda: True)
    with pytest.raises(apsw.ConstraintError), transaction(db):
        db.execute("INSERT INTO t VALUES (1)")
    assert (rows(db), db.in_transaction) == ([], False)
