"""Lists ask the database once per batch, however many items there are."""

from __future__ import annotations

import apsw
import pytest

from flue_grpc import limits
from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft, EntryDraft, MemoryQuery, MessageQuery


@pytest.fixture
def asked(monkeypatch):
    """Collect the statements of all connections that are opened from now on."""
    statements = []

    def note(_cursor, sql, _bindings):
        statements.append(sql)
        return True

    def trace(connection):
        connection.exec_trace = note

    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, trace])
    return statements


@pytest.fixture
def full(asked, path):
    """Open a Store with one session of 5 messages and one of 600."""
    store = Store.open(path)
    for name, count in (("small", 5), ("large", 600)):
        store.create_session(name, name)
        store.append_messages(name, [Draft("user", f"hay {number}") for number in range(count)])
    store.get_session("small")  # a reader is open by now
    asked.clear()
    yield store
    store.close()


def count(asked, listing):
    asked.clear()
    items = sum(1 for _ in listing)
    return items, len([sql for sql in asked if sql.lstrip().upper().startswith("SELECT")])


def test_messages_take_one_query_per_batch_and_one_for_its_session(full, asked):
    assert count(asked, full.list_messages("small")) == (5, 2)
    batches = -(-600 // limits.READ_BATCH_ROWS)
    assert count(asked, full.list_messages("large")) == (600, 2 * batches)


def test_a_search_takes_as_many_queries_for_many_matches_as_for_few(full, asked):
    few, many = (
        count(asked, full.search_messages(MessageQuery("hay", session_id=name), limit=2))
        for name in ("small", "large")
    )
    assert few == many


def test_memory_is_searched_with_as_many_queries_for_many_entries(full, asked):
    for scope, entries in (("few", 4), ("many", 40)):
        for number in range(entries):
            full.write_memory_entry(EntryDraft(scope, f"hay {number}", pinned=False))
    few, many = (
        count(asked, full.search_memory(MemoryQuery("hay", (scope,)), limit=2))
        for scope in ("few", "many")
    )
    assert few == many
