from __future__ import annotations

import apsw
import pytest

from flue_grpc.errors import UnusableDatabaseError
from flue_grpc.store import migrations, opening
from flue_grpc.store.database import Database
from flue_grpc.store.store import Store
from flue_grpc.store.values import (
    DEFAULT_SETTINGS,
    MAX_TIME,
    Draft,
    EntryDraft,
    MemoryChange,
    MemoryQuery,
    MessageQuery,
    ToolCall,
)

TABLES = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, title TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL, content TEXT NOT NULL,
    provider TEXT NOT NULL DEFAULT '', tool_calls TEXT NOT NULL DEFAULT '',
    tool_call_id TEXT NOT NULL DEFAULT '', name TEXT NOT NULL DEFAULT '',
    images TEXT NOT NULL DEFAULT '', created_at INTEGER NOT NULL);
CREATE INDEX messages_of_session ON messages(session_id);
CREATE TABLE memory_entries (id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL,
    content TEXT NOT NULL, pinned INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
"""
SEARCH = """
CREATE VIRTUAL TABLE old_search USING fts5(content, content='messages', content_rowid='id');
CREATE TRIGGER old_insert AFTER INSERT ON messages BEGIN
    INSERT INTO old_search (rowid, content) VALUES (new.id, new.content); END;
CREATE TRIGGER old_memory AFTER UPDATE ON memory_entries BEGIN SELECT raise(ABORT, 'old'); END;
"""
CALLS = (
    '[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\\"a\\": \\"\\u003c\\"}"},'
    '"extra_content":{"google":{"thought_signature":"AbC=="}}}]'
)


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


def fill(original):
    original(
        "INSERT INTO sessions VALUES ('s1', 'a talk', 100, 200), ('s2', 'subagent: x', 50, 60)"
    )
    original(
        "INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id, name, images, "
        "provider, created_at) VALUES ('s1', 'user', 'hello 数据', '', '', '', '[\"data:a\",\"b\"]', '', 100), "
        "('s1', 'assistant', '', ?, '', '', '', 'openai', 150), "
        "('s1', 'tool', 'output', '', 'c1', 'f', '', '', 200), ('s2', 'user', 'hello', '', '', '', '', '', 60)",
        (CALLS,),
    )
    original("INSERT INTO memory_entries VALUES (3, '_global', 'a foo-bar note', 1, 10, 20)")


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


@pytest.mark.parametrize("bad", [-7, 0, 2**62 + 1, 2**63 - 1])
def test_rows_whose_ids_cannot_be_used_are_numbered_anew_in_their_order(
    original, adopted, items, bad
):
    fill(original)
    original(
        "INSERT INTO messages (id, session_id, role, content, created_at) VALUES (?, 's1', 'user', 'odd', 1)",
        (bad,),
    )
    original("INSERT INTO memory_entries VALUES (?, '_global', 'odd', 0, 1, 1)", (bad,))
    store = adopted()
    contents = ["hello 数据", "", "output"]
    expected = ["odd", *contents] if bad <= 0 else [*contents, "odd"]
    listed = items(store.list_messages("s1"))
    assert [message.content for message in listed] == expected
    assert [message.id for message in listed] == ([1, 2, 3, 4] if bad <= 0 else [1, 2, 3, 5])
    assert [r.message.content for r in items(store.search_messages(MessageQuery("odd")))] == ["odd"]
    assert store.append_message("s1", Draft("user", "x")).id == 6
    assert store.write_memory_entry(EntryDraft("_global", "x")).id == (4 if bad <= 0 else 3)
    (found,) = items(store.search_memory(MemoryQuery("odd", ("_global",))))
    assert store.update_memory_entry(found.id, MemoryChange("even")).content == "even"


def test_a_greatest_id_whose_row_was_deleted_leaves_ids_for_new_rows(original, adopted):
    fill(original)
    original(
        "INSERT INTO messages (id, session_id, role, content, created_at) "
        "VALUES (9223372036854775807, 's1', 'user', 'x', 1)"
    )
    original("DELETE FROM messages WHERE content = 'x'")
    assert adopted().append_message("s1", Draft("user", "x")).id == 5


def test_session_ids_that_differ_only_in_bytes_that_are_no_text_stay_apart(
    original, adopted, items
):
    names = (b"a\xff", b"a\xfe", "a\ufffd".encode(), b"a\xfd")
    for name in names[:3]:
        original("INSERT INTO sessions VALUES (CAST(? AS TEXT), ?, 1, 1)", (name, name.hex()))
    for name in names:
        original(
            "INSERT INTO messages (session_id, role, content, created_at) "
            "VALUES (CAST(? AS TEXT), 'user', ?, 1)",
            (name, name.hex()),
        )
    store = adopted()
    found = {
        session.id: (session.title, [m.content for m in items(store.list_messages(session.id))])
        for session in items(store.list_sessions("all"))
    }
    assert found == {
        "a\ufffd": ("61efbfbd", ["61efbfbd"]),
        "a\ufffd.2": ("61ff", ["61ff"]),
        "a\ufffd.3": ("61fe", ["61fe"]),
        "a\ufffd.4": ("", ["61fd"]),
    }


def test_a_title_over_the_limit_is_cut_so_that_lists_can_be_received(original, adopted):
    original("INSERT INTO sessions VALUES ('s', ?, 1, 1)", ("é" * 600_000,))
    assert adopted().get_session("s").title == "é" * 524_288


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


def test_what_is_broken_stays_readable(original, adopted, items):
    original("INSERT INTO sessions VALUES ('s', 't', 1, 1)")
    original(
        "INSERT INTO messages (session_id, role, content, tool_calls, images, created_at) "
        "VALUES ('s', 'developer', 'x', '{broken', '[1]', 1), ('s', '', CAST(x'68c369' AS TEXT), 'null', 'null', 1)"
    )
    store = adopted()
    first, second = items(store.list_messages("s"))
    assert (first.role, first.images) == ("developer", ("[1]",))
    assert first.tool_calls == (ToolCall("", "", "", "", (("raw", "{broken"),)),)
    assert (second.role, second.content, second.tool_calls, second.images) == (
        "",
        "h\ufffdi",
        (),
        (),
    )
    (light, _) = items(store.list_messages("s", images="omitted"))
    assert light.images == ("",)


def test_values_of_other_types_become_what_they_should_be(original, adopted, items):
    original("INSERT INTO sessions VALUES ('s', 't', 'x', 99999999999999)")
    original(
        "INSERT INTO messages (session_id, role, content, created_at) VALUES ('s', 'user', x'610062', 2.9)"
    )
    store = adopted()
    assert store.get_session("s").created_at == 0
    assert store.get_session("s").updated_at == MAX_TIME
    (message,) = items(store.list_messages("s"))
    assert (message.content, message.created_at) == ("a\0b", 2_000_000)


HOUR = 3600


def test_times_go_on_after_the_latest_of_the_original(original, path, items):
    original("INSERT INTO sessions VALUES ('s', 't', 1, ?)", (50 * HOUR,))
    original("INSERT INTO sessions VALUES ('far', 't', 1, ?)", (200 * HOUR,))
    now = 30 * HOUR * 1_000_000
    store = Store(Database.open(path, DEFAULT_SETTINGS, lambda: now))
    assert store.create_session("new", "t").created_at == 50 * HOUR * 1_000_000 + 1
    assert [session.id for session in items(store.list_sessions("all"))] == ["far", "new", "s"]
    store.close()


def test_times_in_milliseconds_do_not_stop_the_clock(original, path, items):
    milliseconds = 1_700_000_000_000
    original("INSERT INTO sessions VALUES ('s', 't', ?1, ?1)", (milliseconds,))
    for number in range(1, 7):
        original(
            "INSERT INTO memory_entries VALUES (?, '_global', 'needle', 0, ?2, ?2)",
            (number, milliseconds),
        )
    store = Store.open(path)
    made = [store.write_memory_entry(EntryDraft("_global", "needle")) for _ in range(2)]
    assert made[0].updated_at < made[1].updated_at < MAX_TIME
    order = [6, 5, 4, 3, 2, 1, 8, 7]
    assert [entry.id for entry in items(store.scope_memory("_global"))] == order
    listing = list(store.scope_memory("_global"))
    for place, placed in enumerate(listing):
        assert list(store.scope_memory("_global", placed.cursor)) == listing[place + 1 :]
    query = MemoryQuery("needle", ("_global",))
    assert [entry.id for entry in items(store.search_memory(query))] == order
    store.update_memory_entry(4, MemoryChange("needle again"))
    rest = items(store.scope_memory("_global", listing[0].cursor))
    assert [entry.id for entry in rest] == [5, 3, 2, 1, 8, 7]
    store.close()


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
