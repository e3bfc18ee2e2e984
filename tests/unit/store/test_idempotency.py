from __future__ import annotations

import threading

import pytest

from flue_grpc.errors import (
    BadRequestIdError,
    BadRoleError,
    MemoryNotFoundError,
    MessageNotFoundError,
    RequestIdReusedError,
    SessionExistsError,
    SessionNotFoundError,
)
from flue_grpc.store.database import Database
from flue_grpc.store.store import Store
from flue_grpc.store.values import DEFAULT_SETTINGS, Draft, EntryDraft, MemoryChange, ToolCall

HOUR = 3600 * 1_000_000


class HandClock:
    """A system clock that a test sets."""

    def __init__(self):
        self.now = 1_700_000_000_000_000

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def steady():
    """A clock that nobody can set; a test lets it pass."""
    return HandClock()


@pytest.fixture
def store(path, clock, steady):
    opened = Store(Database.open(path, DEFAULT_SETTINGS, clock, steady))
    yield opened
    opened.close()


def rows(sql):
    return sql("SELECT rpc, request_id, made FROM requests ORDER BY rpc, request_id")


def test_a_repeated_create_makes_one_session(store, items):
    first = store.create_session("", "t", "r1")
    assert store.create_session("", "t", "r1") == first
    assert items(store.list_sessions("all")) == [first]


def test_a_repeated_append_makes_one_message(store, session_id, items):
    first = store.append_message(session_id, Draft("user", "x"), "r1")
    updated = store.get_session(session_id).updated_at
    assert store.append_message(session_id, Draft("user", "x"), "r1") == first
    assert items(store.list_messages(session_id)) == [first]
    assert store.get_session(session_id).updated_at == updated


def test_a_repeated_batch_makes_its_messages_once(store, session_id, items):
    drafts = [Draft("user", "x"), Draft("assistant", "y")]
    first = store.append_messages(session_id, drafts, "r1")
    assert store.append_messages(session_id, drafts, "r1") == first
    assert items(store.list_messages(session_id)) == list(first)


def test_a_repeated_write_makes_one_entry(store, items):
    first = store.write_memory_entry(EntryDraft("_global", "x"), "r1")
    assert store.write_memory_entry(EntryDraft("_global", "x"), "r1") == first
    assert items(store.scope_memory("_global")) == [first]


def test_a_repeat_writes_nothing(store, session_id, path):
    store.append_message(session_id, Draft("user", "x"), "r1")
    log = path.with_name("store.db-wal")
    before = (path.read_bytes(), log.read_bytes())
    store.append_message(session_id, Draft("user", "x"), "r1")
    assert (path.read_bytes(), log.read_bytes()) == before


def test_a_repeat_answers_from_the_row_as_it_is_now(store):
    session = store.create_session("s", "old", "r1")
    entry = store.write_memory_entry(EntryDraft("_global", "old"), "r2")
    updated = store.update_session("s", "new")
    changed = store.update_memory_entry(entry.id, MemoryChange("new"))
    assert store.create_session("s", "old", "r1") == updated != session
    assert store.write_memory_entry(EntryDraft("_global", "old"), "r2") == changed


def test_a_repeat_survives_a_restart(path, items):
    store = Store.open(path)
    first = store.create_session("", "t", "r1")
    store.close()
    store = Store.open(path)
    assert store.create_session("", "t", "r1") == first
    store.close()


def test_a_repeat_of_what_was_deleted_is_not_found(store, session_id):
    store.create_session("gone", "t", "r1")
    store.append_message("gone", Draft("user", "x"), "r2")
    entry = store.write_memory_entry(EntryDraft("_global", "x"), "r3")
    store.delete_session("gone")
    store.delete_memory_entry(entry.id)
    with pytest.raises(SessionNotFoundError):
        store.create_session("gone", "t", "r1")
    with pytest.raises(SessionNotFoundError):
        store.append_message("gone", Draft("user", "x"), "r2")
    with pytest.raises(MemoryNotFoundError):
        store.write_memory_entry(EntryDraft("_global", "x"), "r3")
    store.create_session("gone", "again")
    with pytest.raises(MessageNotFoundError):
        store.append_message("gone", Draft("user", "x"), "r2")


def test_a_repeat_never_finds_a_later_session_of_the_same_id(store, sql):
    store.create_session("s", "first", "r1")
    store.delete_session("s")
    later = store.create_session("s", "second")
    with pytest.raises(SessionNotFoundError):
        store.create_session("s", "first", "r1")
    # As an earlier version has kept it.
    sql("UPDATE requests SET made = 's'")
    assert store.create_session("s", "first", "r1") == later


def test_another_body_under_the_same_id_is_refused(store, session_id, items):
    draft = Draft("assistant", "x", tool_calls=(ToolCall("a", "b", "c", "d", (("e", "1"),)),))
    store.append_message(session_id, draft, "r1")
    others = (
        Draft("user", "x"),
        Draft("assistant", "y", tool_calls=draft.tool_calls),
        Draft("assistant", "x"),
        Draft("assistant", "x", tool_calls=(ToolCall("a", "b", "c", "d", (("e", "2"),)),)),
    )
    for other in others:
        with pytest.raises(RequestIdReusedError) as caught:
            store.append_message(session_id, other, "r1")
        assert caught.value.metadata == {"request_id": "r1"}
    store.create_session("other", "t")
    with pytest.raises(RequestIdReusedError):
        store.append_message("other", draft, "r1")
    assert len(items(store.list_messages(session_id))) == 1


def test_the_order_of_extra_members_is_no_difference(store, session_id):
    pairs = (("a", "1"), ("b", "2"))
    drafts = [
        Draft("assistant", tool_calls=(ToolCall("", "", "", "", extra),))
        for extra in (pairs, pairs[::-1])
    ]
    first = store.append_message(session_id, drafts[0], "r1")
    assert store.append_message(session_id, drafts[1], "r1") == first


def test_ids_are_scoped_to_their_rpc(store, session_id, sql):
    created_at = store.create_session("s", "t", "r").created_at
    store.append_message(session_id, Draft("user", "x"), "r")
    store.append_messages(session_id, [Draft("user", "x"), Draft("user", "y")], "r")
    store.write_memory_entry(EntryDraft("_global", "x"), "r")
    assert rows(sql) == [
        ("AppendMessage", "r", "1 1"),
        ("AppendMessages", "r", "2 3"),
        ("CreateSession", "r", f"s\n{created_at}"),
        ("WriteMemoryEntry", "r", "1"),
    ]


def test_failed_calls_are_not_remembered(store, session_id, sql):
    with pytest.raises(SessionExistsError):
        store.create_session(session_id, "t", "r1")
    with pytest.raises(SessionNotFoundError):
        store.append_message("later", Draft("user", "x"), "r2")
    with pytest.raises(BadRoleError):
        store.append_message(session_id, Draft("bad", "x"), "r3")
    assert rows(sql) == []
    store.create_session("later", "t", "r1")
    assert store.append_message("later", Draft("user", "x"), "r2").id == 1


@pytest.mark.parametrize("length", [1, 64])
def test_an_id_has_1_to_64_characters(store, length):
    assert store.create_session("", "t", "é" * length) == store.create_session(
        "", "t", "é" * length
    )
    with pytest.raises(BadRequestIdError) as caught:
        store.create_session("", "t", "é" * 65)
    assert caught.value.field == "request_id"


def test_no_id_is_never_a_repeat(store):
    assert store.create_session("", "t").id != store.create_session("", "t").id


def test_an_id_is_remembered_for_24_hours(store, steady):
    first = store.create_session("", "t", "r1")
    steady.now += 24 * HOUR - 1
    assert store.create_session("", "t", "r1") == first
    steady.now += 1
    second = store.create_session("", "other body", "r1")
    assert second.id != first.id
    assert store.create_session("", "other body", "r1") == second


@pytest.mark.parametrize("jump", [30 * HOUR, -30 * HOUR, 100 * 365 * 24 * HOUR])
def test_an_id_is_remembered_however_the_system_s_clock_jumps(
    path, store, clock, *, steady, items, jump
):
    first = store.create_session("", "t", "r1")
    clock.now += jump
    store.create_session("meanwhile", "t", "r2")
    clock.now -= jump
    assert store.create_session("", "t", "r1") == first
    clock.now += jump
    assert store.create_session("", "t", "r1") == first
    store.close()
    again = Store(Database.open(path, DEFAULT_SETTINGS, clock, steady))
    assert again.create_session("", "t", "r1") == first
    assert len(items(again.list_sessions("all"))) == 2
    again.close()


def test_outdated_ids_are_removed_a_few_at_a_time(store, steady, sql):
    for number in range(40):
        store.create_session("", "t", f"old{number:02}")
    steady.now += 25 * HOUR
    store.create_session("", "t", "new1")
    assert sql("SELECT count(*) FROM requests") == [(40 - 16 + 1,)]
    store.create_session("", "t", "new2")
    store.create_session("", "t", "new3")
    assert [request_id for _, request_id, _ in rows(sql)] == ["new1", "new2", "new3"]


def test_what_is_kept_is_a_hash_and_an_id(store, session_id, sql):
    store.append_message(session_id, Draft("user", "a secret " * 100), "r1")
    ((body, made),) = sql("SELECT body, made FROM requests")
    assert (len(body), made) == (16, "1 1")


def test_racing_repeats_make_one_message(store, session_id, items):
    made = []
    barrier = threading.Barrier(8)

    def append():
        barrier.wait()
        made.append(store.append_message(session_id, Draft("user", "x"), "r1"))

    threads = [threading.Thread(target=append) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert items(store.list_messages(session_id)) == made[:1]
    assert len({message.id for message in made}) == 1
