"""Adopted rows that the original should not have: ids, times and texts that cannot be kept."""

from __future__ import annotations

import pytest

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

from .originals import fill


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
