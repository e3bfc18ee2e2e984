from __future__ import annotations

import apsw
import pytest

from flue_grpc.errors import UnusableDatabaseError
from flue_grpc.store import migrations, opening
from flue_grpc.store.store import Store
from flue_grpc.store.values import (
    DEFAULT_SETTINGS,
    Draft,
    EntryDraft,
    MemoryQuery,
    MessageQuery,
    ToolCall,
)

from .originals import CALLS, fill


def test_an_original_database_is_taken_over_whole(original, adopted, items):
    fill(original)
    store = adopted()
    assert [
        (s.id, s.title, s.created_at, s.updated_at) for s in items(store.list_sessions("all"))
    ] == [
        ("s1", "a talk", 100_000_000, 200_000_000),
        ("s2", "subagent: x", 50_000_000, 60_000_000),
    ]
    first, second, third = items(store.list_messages("s1"))
    assert (first.id, first.content, first.images) == (1, "hello 数据", ("data:a", "b"))
    assert (first.created_at, second.provider) == (100_000_000, "openai")
    extra = (("extra_content", '{"google":{"thought_signature":"AbC=="}}'),)
    assert second.tool_calls == (ToolCall("c1", "function", "f", '{"a": "<"}', extra),)
    assert (third.role, third.tool_call_id, third.name) == ("tool", "c1", "f")
    (entry,) = items(store.scope_memory("_global"))
    assert (entry.id, entry.pinned, entry.created_at, entry.updated_at) == (
        3,
        True,
        10_000_000,
        20_000_000,
    )


def test_old_messages_and_memory_can_be_searched(original, adopted, items):
    fill(original)
    store = adopted()
    assert [r.message.id for r in items(store.search_messages(MessageQuery("数 hello")))] == [1]
    assert len(items(store.search_messages(MessageQuery("hello", scope="all")))) == 2
    assert items(store.search_messages(MessageQuery("output", scope="all"))) == []
    assert len(items(store.search_memory(MemoryQuery("foo-bar", ("_global",))))) == 1


def test_the_column_of_tool_calls_stays_as_it_was(original, adopted, sql):
    fill(original)
    adopted()
    assert sql("SELECT tool_calls, images FROM messages WHERE id < 3 ORDER BY id") == [
        ("", '["data:a","b"]'),
        (CALLS, ""),
    ]


def test_the_schema_is_that_of_a_new_database(original, adopted, path, tmp_path, sql):
    fill(original)
    adopted()
    Store.open(tmp_path / "new" / "store.db").close()
    new = apsw.Connection(str(tmp_path / "new" / "store.db"))
    schema = (
        "SELECT type, name, sql FROM sqlite_schema WHERE name <> 'sqlite_stat1' ORDER BY type, name"
    )
    assert sql(schema) == new.execute(schema).fetchall()
    new.close()
    assert sql("PRAGMA integrity_check") == [("ok",)]
    assert sql("PRAGMA foreign_key_check") == []


def test_a_copy_of_the_untouched_database_is_kept_private(original, adopted, path):
    fill(original)
    adopted()
    copy = path.with_name("store.db.before-flue-grpc")
    assert copy.stat().st_mode & 0o777 == 0o600
    connection = apsw.Connection(str(copy))
    assert migrations.look(connection).kind == "original"
    assert connection.execute("SELECT updated_at FROM sessions WHERE id = 's1'").fetchall() == [
        (200,)
    ]
    assert connection.execute(
        "SELECT count(*) FROM old_search WHERE old_search MATCH 'hello'"
    ).fetchall() == [(2,)]
    connection.close()
    assert sorted(entry.name for entry in path.parent.iterdir() if "partial" in entry.name) == []


def test_an_earlier_copy_is_never_overwritten(original, adopted, path):
    earlier = path.with_name("store.db.before-flue-grpc")
    earlier.write_text("earlier")
    fill(original)
    adopted()
    assert earlier.read_text() == "earlier"
    assert path.with_name("store.db.before-flue-grpc.2").exists()


def test_an_adopted_database_is_opened_as_ours_from_then_on(original, adopted, path, items):
    fill(original)
    store = adopted()
    made = store.append_message("s1", Draft("user", "new words"))
    assert made.id == 5
    assert store.write_memory_entry(EntryDraft("_global", "x")).id == 4
    store.close()
    again = Store.open(path)
    assert len(items(again.list_messages("s1"))) == 4
    again.close()
    copies = [entry.name for entry in path.parent.iterdir() if "before" in entry.name]
    assert copies == ["store.db.before-flue-grpc"]


def test_ids_of_deleted_rows_are_not_given_again(original, adopted):
    fill(original)
    original("DELETE FROM messages WHERE id = 4")
    original("DELETE FROM memory_entries")
    store = adopted()
    assert store.append_message("s1", Draft("user", "x")).id == 5
    assert store.write_memory_entry(EntryDraft("_global", "x")).id == 4


def test_an_orphan_gets_a_session_so_that_nothing_is_lost(original, adopted, items):
    fill(original)
    original(
        "INSERT INTO messages (session_id, role, content, created_at) "
        "VALUES ('nobody', 'user', 'an orphan', 70), ('nobody', 'user', 'another', 90)"
    )
    store = adopted()
    session = store.get_session("nobody")
    assert (session.title, session.created_at, session.updated_at) == ("", 70_000_000, 90_000_000)
    assert len(items(store.list_messages("nobody"))) == 2


def test_a_database_before_memory_and_search_is_taken_over_too(path, items):
    path.parent.mkdir(mode=0o700)
    connection = apsw.Connection(str(path))
    connection.execute(
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, title TEXT, created_at INTEGER, updated_at INTEGER);"
        "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, "
        "content TEXT, created_at INTEGER);"
        "INSERT INTO sessions VALUES ('s', NULL, 1, 2);"
        "INSERT INTO messages (session_id, role, content, created_at) VALUES ('s', 'user', 'old words', 3)"
    )
    connection.close()
    store = Store.open(path)
    assert store.get_session("s").title == ""
    assert len(items(store.search_messages(MessageQuery("old words")))) == 1
    assert items(store.scope_memory("_global")) == []
    store.close()


def test_a_failure_on_the_way_leaves_the_original(original, path, monkeypatch):
    fill(original)
    before = "SELECT * FROM messages ORDER BY id"
    connection = apsw.Connection(str(path))
    rows = connection.execute(before).fetchall()
    connection.close()

    def fail(*_):
        raise apsw.FullError("no room")

    monkeypatch.setattr("flue_grpc.store.adoption._copy_memory", fail)
    for _ in range(3):
        with pytest.raises(UnusableDatabaseError, match="the disk is full"):
            Store.open(path)
    connection = apsw.Connection(str(path))
    assert connection.execute(before).fetchall() == rows
    assert opening.inspect(path, DEFAULT_SETTINGS).kind == "original"
    connection.close()
    # No start leaves one more copy of everything.
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["lock", "store.db"]


def test_a_failure_after_an_adoption_keeps_the_copy(original, path, monkeypatch):
    fill(original)

    def fail(*_):
        raise apsw.FullError("no room")

    monkeypatch.setattr("flue_grpc.store.opening._complete_indexes", fail)
    with pytest.raises(UnusableDatabaseError, match="the disk is full"):
        Store.open(path)
    assert path.with_name("store.db.before-flue-grpc").exists()


def test_a_transaction_that_a_crash_cut_off_is_undone_first(original, path, items):
    fill(original)
    original("INSERT INTO sessions VALUES ('large', ?, 1, 1)", ("x" * 100_000,))
    other = apsw.Connection(str(path))
    other.pragma("cache_size", 2)  # pages; more are written before the commit
    other.execute("BEGIN")
    other.execute("UPDATE sessions SET title = title || title")
    other.execute("DELETE FROM messages")
    torn = {name: name.read_bytes() for name in path.parent.iterdir()}
    other.execute("ROLLBACK")
    other.close()
    for name, data in torn.items():
        name.write_bytes(data)
    assert path.with_name("store.db-journal").stat().st_size > 0
    assert opening.inspect(path, DEFAULT_SETTINGS).kind == "original"
    store = Store.open(path)
    sessions = items(store.list_sessions("all"))
    assert max(len(session.title) for session in sessions) == 100_000
    found = [items(store.list_messages(session.id)) for session in sessions]
    assert sum(map(len, found)) == 4
    store.close()


def test_an_original_that_is_damaged_is_left_alone(original, path):
    fill(original)
    data = bytearray(path.read_bytes())
    root = data.index(b"hello") // 4096 * 4096
    data[root : root + 4096] = b"\xff" * 4096
    path.write_bytes(data)
    with pytest.raises(UnusableDatabaseError, match="is damaged"):
        Store.open(path)
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT count(*) FROM sessions").fetchall() == [(2,)]
    connection.close()
