from __future__ import annotations

import apsw
import pytest

from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft

from .originals import SEARCH, TABLES
from .transfers import fill


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "store.db"


@pytest.fixture
def store(path):
    opened = Store.open(path)
    yield opened
    opened.close()


@pytest.fixture
def session_id(store):
    return store.create_session("s1", "a talk").id


@pytest.fixture
def say(store, session_id):
    """Append a user message to ``session_id`` and return it."""

    def append(content, role="user", **fields):
        return store.append_message(
            fields.pop("session_id", session_id), Draft(role, content, **fields)
        )

    return append


@pytest.fixture
def sql(path):
    """Execute SQL on the database file from outside, and return all rows."""

    def execute(statement, bindings=()):
        connection = apsw.Connection(str(path))
        try:
            return connection.execute(statement, bindings).fetchall()
        finally:
            connection.close()

    return execute


@pytest.fixture
def items():
    """Drain a list of placed items."""

    def drain(listing):
        return [placed.item for placed in listing]

    return drain


@pytest.fixture
def original(path):
    """Write an original database; give a function that executes more SQL on it."""
    path.parent.mkdir(mode=0o700)

    def execute(sql, bindings=()):
        connection = apsw.Connection(str(path))
        connection.execute(sql, bindings)
        connection.close()

    execute(TABLES + SEARCH)
    return execute


@pytest.fixture
def adopted(path, original):
    """Open the original database after it was filled."""
    opened = []

    def adopt():
        opened.append(Store.open(path))
        return opened[0]

    yield adopt
    for store in opened:
        store.close()


@pytest.fixture
def filled(store):
    fill(store)
    return store


@pytest.fixture
def target(tmp_path):
    return tmp_path / "target" / "store.db"
