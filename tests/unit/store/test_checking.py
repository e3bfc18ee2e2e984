from __future__ import annotations

import shutil

import apsw
import pytest

from flue_grpc.errors import UnusableDatabaseError
from flue_grpc.store import checking
from flue_grpc.store.checking import IndexFault, TableCount
from flue_grpc.store.database import owned
from flue_grpc.store.store import Store
from flue_grpc.store.values import DEFAULT_SETTINGS, Draft, EntryDraft, MemoryQuery, MessageQuery


@pytest.fixture
def filled(path):
    """A closed database with some of everything."""
    store = Store.open(path)
    store.create_session("s", "t")
    for content in ("plain words", "数据库 SQLite", "don't stop", "", "words again"):
        store.append_message("s", Draft("user", content))
    store.append_message("s", Draft("tool", "output"))
    store.write_memory_entry(EntryDraft("_global", "a note"))
    store.close()
    return path


def check(path):
    return checking.check(path, DEFAULT_SETTINGS)


def test_a_sound_database_is_sound(filled):
    checked = check(filled)
    assert checked.is_sound
    assert [(count.name, count.rows) for count in checked.counts] == [
        ("sessions", 1),
        ("messages", 6),
        ("memory_entries", 1),
    ]
    assert (checked.problems, checked.index_faults) == ((), ())
    assert sorted(entry.name for entry in filled.parent.iterdir()) == ["lock", "store.db"]


def test_a_check_beside_a_server_sees_what_was_answered(store, session_id, path):
    for number in range(50):
        store.append_message(session_id, Draft("user", f"word{number}"))
    checked = check(path)
    assert checked.is_sound
    assert checked.counts[1] == TableCount("messages", 50)
    assert store.append_message(session_id, Draft("user", "x")).id == 51


INDEX = "INSERT INTO message_index (rowid, content) VALUES"
FORGET = "DELETE FROM message_index WHERE rowid ="
FOREIGN = """INSERT INTO messages (session_id, created_at, role, content)
    VALUES ('s', 1, 'user', 'x'), ('s', 1, 'assistant', 'y')"""
FAULTS = {
    "a row is missing": (f"{FORGET} 2", 1),
    "a row is too much": (f"{INDEX} (6, 'output')", 1),
    "another text": (f"{FORGET} 1; {INDEX} (1, 'other words')", 1),
    "both texts": (f"{INDEX} (1, 'more words')", 1),
    "the text changed": ("UPDATE messages SET content = 'changed' WHERE id = 3", 1),
    "foreign rows": (FOREIGN, 2),
    "a deleted row": ("DELETE FROM messages WHERE id = 5", 1),
    "not split": (f"{FORGET} 2; {INDEX} (2, '数据库 SQLite')", 1),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_index_that_differs_from_its_rows_is_found_and_repaired(filled, sql, name):
    damage, rows = FAULTS[name]
    sql(damage)
    checked = check(filled)
    assert checked.index_faults == (IndexFault("message_index", rows),)
    assert checked.problems == ()
    with owned(filled, DEFAULT_SETTINGS) as connection:
        checking.repair(connection)
    assert check(filled).is_sound


@pytest.mark.parametrize("word", ["a" + "ж" * 40_000, "字" * 20_000, "a" + "\u0301\u0323" * 40_000])
def test_a_token_that_fts5_cuts_is_checked_and_repaired(path, items, word):
    store = Store.open(path)
    store.create_session("s", "t")
    store.append_message("s", Draft("user", f"{word} needle"))
    assert len(items(store.search_messages(MessageQuery("needle")))) == 1
    assert items(store.search_messages(MessageQuery("ж"))) == []
    store.close()
    assert check(path).is_sound
    with owned(path, DEFAULT_SETTINGS) as connection:
        checking.repair(connection)
    assert check(path).is_sound


def test_the_index_of_memory_is_checked_too(filled, sql):
    sql("UPDATE memory_entries SET content = 'another note'")
    assert check(filled).index_faults == (IndexFault("memory_index", 1),)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE message_index_data SET block = x'00ff00ff' WHERE id > 10",
        "DELETE FROM message_index_data",
        "UPDATE message_index_config SET v = 99",
        "DELETE FROM message_index_config",
        "DROP TABLE message_index_config",
        "DROP TABLE message_index_data",
        "DROP TABLE message_index_idx",
        "DROP TABLE message_index_docsize",
        "DROP TABLE message_index",
    ],
)
def test_a_damaged_index_is_found_and_repaired(filled, sql, items, damage):
    sql(damage)
    assert check(filled).index_faults == (IndexFault("message_index", None),)
    with owned(filled, DEFAULT_SETTINGS) as connection:
        checking.repair(connection)
    assert check(filled).is_sound
    store = Store.open(filled)
    assert len(items(store.search_messages(MessageQuery("words")))) == 2
    assert len(items(store.search_memory(MemoryQuery("note", ("_global",))))) == 1
    store.close()


def test_a_missing_session_is_a_problem_that_a_repair_leaves(filled, sql):
    sql("DELETE FROM sessions")
    checked = check(filled)
    assert len(checked.problems) == 6
    assert "of messages refers to a missing row of sessions" in checked.problems[0]


def test_a_damaged_page_is_a_problem(path):
    store = Store.open(path)
    store.create_session("s", "t")
    for number in range(50):
        store.append_message("s", Draft("user", f"needle{number} " * 30))
    store.close()
    data = bytearray(path.read_bytes())
    place = data.index(b"needle25 ") // 4096 * 4096
    data[place : place + 4096] = b"\xff" * 4096
    path.write_bytes(data)
    checked = check(path)
    assert not checked.is_sound
    assert checked.problems


def test_a_check_changes_nothing(filled, sql, tmp_path):
    sql("DELETE FROM message_index WHERE rowid = 2")
    before = filled.read_bytes()
    check(filled)
    assert filled.read_bytes() == before


@pytest.mark.parametrize("kind", ["missing", "empty", "text"])
def test_what_is_no_store_is_told_in_words(path, kind):
    path.parent.mkdir()
    if kind != "missing":
        path.write_bytes(b"" if kind == "empty" else b"text " * 1000)
    with pytest.raises(UnusableDatabaseError):
        check(path)
    assert [entry.name for entry in path.parent.iterdir()] == (
        [] if kind == "missing" else ["store.db"]
    )


def test_refilling_keeps_the_settings_of_the_index(filled, sql):
    with owned(filled, DEFAULT_SETTINGS) as connection:
        checking.repair(connection)
    assert sql("SELECT v FROM message_index_config WHERE k = 'hashsize'") == [(1024 * 1024,)]


def test_a_copy_of_a_store_is_checked_where_it_is(filled, tmp_path):
    shutil.copyfile(filled, tmp_path / "copy.db")
    assert check(tmp_path / "copy.db").is_sound


def test_an_integrity_check_of_sqlite_itself_agrees(filled):
    connection = apsw.Connection(str(filled))
    connection.execute("INSERT INTO message_index (message_index) VALUES ('integrity-check')")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
