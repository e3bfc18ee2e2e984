from __future__ import annotations

import re

import pytest

from flue_grpc.errors import (
    BadIdError,
    SessionExistsError,
    SessionNotFoundError,
    ValueTooLargeError,
)
from flue_grpc.store.values import Draft, MessageQuery, Session


def ids(items, listing):
    return [session.id for session in items(listing)]


def test_a_new_session_is_kept_as_given(store):
    session = store.create_session("an id", "a title")
    assert session == Session("an id", "a title", session.created_at, session.created_at)
    assert store.get_session("an id") == session


def test_an_id_is_made_for_an_empty_one(store):
    first, second = store.create_session("", "t"), store.create_session("", "t")
    assert re.fullmatch(r"ses_[0-9a-f]{16}", first.id)
    assert first.id != second.id


@pytest.mark.parametrize("bad", ["x" * 129, "a\nb", "\0", "a\x7f", "a\x85"])
def test_ids_of_bad_form_are_refused(store, bad):
    with pytest.raises(BadIdError):
        store.create_session(bad, "t")
    with pytest.raises(SessionNotFoundError):
        store.get_session(bad)


@pytest.mark.parametrize("good", ["x" * 128, "数" * 128, " ", "a b/c:d'e\"f", "\u200d", "𠮷"])
def test_ids_of_any_other_form_are_taken(store, good, items):
    assert store.create_session(good, "t").id == good
    assert ids(items, store.list_sessions("all")) == [good]


def test_a_taken_id_is_refused_and_the_session_stays(store):
    before = store.create_session("s", "first")
    with pytest.raises(SessionExistsError) as caught:
        store.create_session("s", "second")
    assert caught.value.metadata == {"session_id": "s"}
    assert store.get_session("s") == before


@pytest.mark.parametrize("title", ["", "new", "a\0b", "subagent: x"])
def test_an_update_sets_the_title_and_touches_the_session(store, title):
    before = store.create_session("s", "old")
    after = store.update_session("s", title)
    assert (after.title, after.created_at) == (title, before.created_at)
    assert after.updated_at > before.updated_at
    assert store.get_session("s") == after


def test_a_title_is_at_most_1_mib(store):
    largest = "é" * (1 << 19)
    assert store.create_session("s", largest).title == largest
    assert store.update_session("s", largest).title == largest
    for change in (store.create_session, store.update_session):
        with pytest.raises(ValueTooLargeError) as caught:
            change("s", largest + "x")
        assert (caught.value.field, caught.value.metadata) == ("title", {"limit": "1048576"})


def test_what_is_unknown_is_named(store):
    for call in (
        lambda: store.get_session("x"),
        lambda: store.update_session("x", "t"),
        lambda: store.delete_session("x"),
        lambda: store.append_message("x", Draft("user", "hello")),
        lambda: list(store.list_messages("x")),
    ):
        with pytest.raises(SessionNotFoundError) as caught:
            call()
        assert caught.value.metadata == {"session_id": "x"}


def test_a_deleted_session_takes_its_messages_and_their_index_entries_with_it(store, items, sql):
    store.create_session("gone", "t")
    store.create_session("kept", "t")
    for name in ("gone", "kept"):
        for role in ("user", "tool", "assistant"):
            store.append_message(name, Draft(role, "shared word"))
    store.delete_session("gone")
    found = items(store.search_messages(MessageQuery("shared")))
    assert {result.message.session_id for result in found} == {"kept"}
    assert sql("SELECT count(*) FROM messages") == [(3,)]
    assert sql("SELECT id FROM message_index_docsize ORDER BY id") == [(4,), (6,)]
    with pytest.raises(SessionNotFoundError):
        store.delete_session("gone")


def test_an_id_can_be_used_again_after_its_session_is_deleted(store, items):
    store.create_session("s", "old")
    store.append_message("s", Draft("user", "old"))
    store.delete_session("s")
    store.create_session("s", "new")
    assert items(store.list_messages("s")) == []
    assert store.append_message("s", Draft("user", "new")).id == 2


def test_the_list_is_by_update_then_creation_then_id(store, items, sql):
    for name in "abcdef":
        store.create_session(name, "t")
    sql("UPDATE sessions SET updated_at = 9, created_at = 1 WHERE id IN ('a', 'b')")
    sql("UPDATE sessions SET updated_at = 9, created_at = 2 WHERE id IN ('c', 'd')")
    sql("UPDATE sessions SET updated_at = 8, created_at = 7 WHERE id = 'e'")
    sql("UPDATE sessions SET updated_at = 10, created_at = 0 WHERE id = 'f'")
    assert ids(items, store.list_sessions("all")) == list("fcdabe")


def test_a_message_moves_its_session_to_the_front(store, items):
    for name in "abc":
        store.create_session(name, "t")
    store.append_message("a", Draft("tool", ""))
    assert ids(items, store.list_sessions("all")) == list("acb")


@pytest.mark.parametrize("title", ["subagent: ", "subagent: x", "subagent: \0"])
def test_sessions_of_subagents_can_be_left_out(store, items, title):
    store.create_session("user", "Subagent: x")
    store.create_session("also", "subagent:x")
    store.create_session("sub", title)
    assert set(ids(items, store.list_sessions("user"))) == {"user", "also"}
    assert set(ids(items, store.list_sessions("all"))) == {"user", "also", "sub"}


def test_a_list_goes_on_from_any_place(store, sql):
    for number in range(30):
        store.create_session(f"s{number:02}", "t")
    sql("UPDATE sessions SET updated_at = updated_at % 3, created_at = created_at % 2")
    whole = list(store.list_sessions("all"))
    for place, placed in enumerate(whole):
        assert list(store.list_sessions("all", placed.cursor)) == whole[place + 1 :]


def test_a_list_gives_none_twice_and_leaves_out_what_changes_meanwhile(store, items):
    for number in range(5):
        store.create_session(f"s{number}", "t")
    listing = store.list_sessions("all")
    first = next(listing)
    store.append_message("s1", Draft("user", "x"))
    store.create_session("s9", "t")
    assert ids(items, store.list_sessions("all", first.cursor)) == ["s3", "s2", "s0"]


def test_a_list_is_read_in_bounded_batches(store, items, monkeypatch):
    monkeypatch.setattr("flue_grpc.limits.READ_BATCH_ROWS", 4)
    for number in range(10):
        store.create_session(f"s{number}", "t")
    assert ids(items, store.list_sessions("all")) == [f"s{number}" for number in range(9, -1, -1)]
