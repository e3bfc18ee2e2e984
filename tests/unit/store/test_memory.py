from __future__ import annotations

import pytest

from flue_grpc import limits
from flue_grpc.errors import (
    BadCombinationError,
    EmptyScopeError,
    MemoryNotFoundError,
    ValueTooLargeError,
)
from flue_grpc.store import memory, memory_search, paging
from flue_grpc.store.values import EntryDraft, MemoryChange, MemoryEntry, MemoryQuery

WORK = "/home/u/work"


@pytest.fixture
def write(store):
    def write_entry(content, scope=WORK, *, pinned=False):
        return store.write_memory_entry(EntryDraft(scope, content, pinned))

    return write_entry


@pytest.fixture
def found(store, items):
    def search(query, *scopes):
        return [
            entry.content
            for entry in items(store.search_memory(MemoryQuery(query, scopes or (WORK,))))
        ]

    return search


def contents(items, listing):
    return [entry.content for entry in items(listing)]


def test_an_entry_is_kept_as_given(store, write, items):
    entry = write("a\0b ünï", pinned=True)
    assert entry == MemoryEntry(1, WORK, "a\0b ünï", True, entry.created_at, entry.created_at)
    assert items(store.scope_memory(WORK)) == [entry]


def test_a_scope_is_needed(store):
    with pytest.raises(EmptyScopeError) as caught:
        store.write_memory_entry(EntryDraft("", "x"))
    assert caught.value.field == "scope"


@pytest.mark.parametrize("scope", ["x" * 4097, "é" * 2049])
def test_a_scope_is_at_most_4_kib(store, write, items, scope):
    with pytest.raises(ValueTooLargeError) as caught:
        write("x", scope)
    assert (caught.value.field, caught.value.metadata) == ("scope", {"limit": "4096"})
    entry = write("x", "é" * 2048)
    assert items(store.scope_memory("é" * 2048)) == [entry]
    assert items(store.scope_memory(scope)) == []


def test_the_scope_counts_in_a_batch(write, store, items, monkeypatch):
    monkeypatch.setattr(limits, "READ_BATCH_BYTES", 1000)
    entries = [write("x", "s" * 500) for _ in range(5)]
    taken = []
    read = paging.read_batch

    def watched(*arguments):
        rows, is_last = read(*arguments)
        taken.append(len(rows))
        return rows, is_last

    monkeypatch.setattr(memory, "read_batch", watched)
    assert items(store.scope_memory("s" * 500)) == entries[::-1]
    assert taken == [2, 2, 1]


@pytest.mark.parametrize("content", ["x" * 1_048_577, "é" * 524_289])
def test_content_is_at_most_1_mib(store, write, content):
    with pytest.raises(ValueTooLargeError):
        write(content)
    entry = write("x" * 1_048_576)
    with pytest.raises(ValueTooLargeError):
        store.update_memory_entry(entry.id, MemoryChange(content))


def test_an_update_keeps_what_is_not_given(store, write):
    before = write("old", pinned=True)
    after = store.update_memory_entry(before.id, MemoryChange(content="new"))
    assert after == MemoryEntry(1, WORK, "new", True, before.created_at, after.updated_at)
    assert after.updated_at > before.updated_at
    last = store.update_memory_entry(before.id, MemoryChange(pinned=False))
    assert (last.content, last.pinned, last.created_at) == ("new", False, before.created_at)
    assert store.update_memory_entry(before.id, MemoryChange(content="")).content == ""


def test_an_update_of_nothing_is_refused(store, write):
    with pytest.raises(BadCombinationError):
        store.update_memory_entry(write("x").id, MemoryChange())


def test_unknown_entries_are_named(store):
    for call in (
        lambda: store.update_memory_entry(7, MemoryChange("x")),
        lambda: store.delete_memory_entry(7),
    ):
        with pytest.raises(MemoryNotFoundError) as caught:
            call()
        assert caught.value.metadata == {"id": "7"}


def test_a_deleted_entry_is_gone_from_lists_and_search(store, write, found, items):
    entry = write("to forget")
    store.delete_memory_entry(entry.id)
    assert items(store.scope_memory(WORK)) == found("forget") == []
    assert write("next").id == 2


def test_search_follows_updates(store, write, found):
    entry = write("the old words")
    store.update_memory_entry(entry.id, MemoryChange("the new text"))
    assert (found("old"), found("new text"), found("words")) == ([], ["the new text"], [])


def test_pinned_entries_come_first_then_the_last_updated(store, write, items):
    for name in "abcd":
        write(name, pinned=name in "ac")
    store.update_memory_entry(2, MemoryChange("b2"))
    assert contents(items, store.scope_memory(WORK)) == ["c", "a", "b2", "d"]
    assert contents(items, store.recent_memory([WORK])) == ["c", "a", "b2", "d"]


def test_ties_of_time_are_ordered_by_id_descending(store, write, items, sql):
    for name in "abc":
        write(name)
    sql("UPDATE memory_entries SET updated_at = 5")
    assert contents(items, store.scope_memory(WORK)) == ["c", "b", "a"]


def test_recent_memory_covers_the_given_scopes_once(store, write, items):
    write("here")
    write("everywhere", "_global")
    write("elsewhere", "/other")
    assert contents(items, store.recent_memory([WORK, "_global", WORK])) == ["everywhere", "here"]
    assert contents(items, store.recent_memory([])) == []
    assert contents(items, store.recent_memory(["nowhere", ""])) == []


def test_scopes_are_compared_whole(store, write, items):
    for scope in ("a", "A", "a ", "a\0b", 'q"uote', "数据", "a%"):
        write(scope, scope)
    for scope in ("a", "A", "a ", "a\0b", 'q"uote', "数据", "a%"):
        assert contents(items, store.recent_memory([scope])) == [scope]
        assert contents(items, store.scope_memory(scope)) == [scope]
        assert items(store.search_memory(MemoryQuery("zzz", (scope,)))) == []


def test_very_many_scopes_are_no_error(store, write, items):
    write("x", "s40000")
    scopes = [f"s{number}" for number in range(50_000)]
    assert contents(items, store.recent_memory(scopes)) == ["x"]


def test_of_many_scopes_each_batch_looks_up_the_known_ones(store, write, items, monkeypatch):
    monkeypatch.setattr(limits, "READ_BATCH_ROWS", 2)
    entries = [write("x", f"s{number}") for number in (4, 4, 7, 5, 7)]
    bound = []
    read = paging.read_batch

    def watched(connection, sql, bindings, size):
        bound.append(bindings[0])
        return read(connection, sql, bindings, size)

    monkeypatch.setattr(memory, "read_batch", watched)
    scopes = [f"s{number}" for number in range(2000)]
    assert items(store.recent_memory(scopes * 2)) == entries[::-1]
    assert bound == ['["s4","s5","s7"]'] * 3


def test_lists_go_on_from_any_place(store, write, sql):
    for number in range(20):
        write(str(number), pinned=number % 3 == 0)
    sql("UPDATE memory_entries SET updated_at = updated_at - updated_at % 4")
    for listing in (
        lambda *a: store.recent_memory([WORK], *a),
        lambda *a: store.scope_memory(WORK, *a),
    ):
        whole = list(listing())
        assert len(whole) == 20
        for place, placed in enumerate(whole):
            assert list(listing(placed.cursor)) == whole[place + 1 :]


def test_an_entry_that_changes_after_the_first_response_is_left_out(store, write, items):
    for name in "abcd":
        write(name, pinned=name in "cd")
    listing = store.scope_memory(WORK)
    first = next(listing)
    assert first.item.content == "d"
    store.update_memory_entry(4, MemoryChange(pinned=False))
    store.update_memory_entry(1, MemoryChange(pinned=True))
    write("e")
    assert contents(items, store.scope_memory(WORK, first.cursor)) == ["c", "b"]


def test_lists_are_read_in_bounded_batches(store, write, items, monkeypatch):
    monkeypatch.setattr("flue_grpc.limits.READ_BATCH_ROWS", 3)
    monkeypatch.setattr("flue_grpc.limits.READ_BATCH_BYTES", 12)
    for number in range(10):
        write(f"entry {number}")
    expected = [f"entry {number}" for number in range(9, -1, -1)]
    assert contents(items, store.recent_memory([WORK])) == expected
    assert contents(items, store.search_memory(MemoryQuery("entry", (WORK,)))) == expected


@pytest.mark.parametrize(
    ("stored", "characters"),
    [
        ([], 0),
        (["abc"], 3),
        (["é数𠮷"], 3),
        (["a\0bc", "\0\0", "x"], 7),
        (["e\u0301"], 2),
        ([""], 0),
    ],
)
def test_the_size_counts_code_points_also_after_a_nul(store, write, stored, characters):
    write("not counted", "/other")
    for content in stored:
        write(content)
    assert store.scope_memory_size(WORK) == characters


def test_search_knows_words_not_syntax(write, found):
    write("uses foo-bar and don't stop")
    write("数据库锁定 in SQLite")
    for query in ("foo-bar", "don't", "STOP", "uses foo", "foo"):
        assert found(query) == ["uses foo-bar and don't stop"]
    for query in ("数", "据库", "锁定", "SQLite 数据"):
        assert found(query) == ["数据库锁定 in SQLite"]
    assert found("NOT uses") == found("fo*") == found("bar-foo") == found("*") == []


def test_search_is_only_within_the_given_scopes(write, found):
    write("shared word", WORK)
    write("shared note", "_global")
    assert found("shared", WORK) == ["shared word"]
    assert set(found("shared", WORK, "_global")) == {"shared word", "shared note"}


def test_search_ranks_by_relevance_and_near_ties_by_recency(store, write, found):
    write("apple " * 5 + "pie")
    for number in range(3):
        write(f"apple and some other words {number}")
    write("nothing of that kind at all, only long text about other things " * 3)
    store.update_memory_entry(2, MemoryChange(pinned=True))
    assert found("apple") == [
        "apple apple apple apple apple pie",
        "apple and some other words 0",
        "apple and some other words 2",
        "apple and some other words 1",
    ]


def test_ranked_pages_are_exact_and_leave_out_later_changes(store, write, items):
    for number in range(25):
        write(f"common word {number} " + "filler " * (number % 7))
    query = MemoryQuery("common", (WORK,))
    whole = list(store.search_memory(query, limit=1000))
    assert len(whole) == 25
    for place, placed in enumerate(whole):
        assert list(store.search_memory(query, placed.cursor, 1000)) == whole[place + 1 :]
    store.update_memory_entry(whole[20].item.id, MemoryChange(pinned=True))
    for _ in range(30):
        write("common common common")
    some = items(store.search_memory(query, whole[0].cursor, 5))
    assert [entry.id for entry in some] == [placed.item.id for placed in whole[1:7]]
    rest = items(store.search_memory(query, whole[9].cursor, 1000))
    assert whole[20].item.id not in [entry.id for entry in rest]
    assert "common common common" not in [entry.content for entry in rest]


def test_an_entry_that_changes_while_a_search_is_read_is_left_out(store, write, items, monkeypatch):
    monkeypatch.setattr(memory_search, "_PAGE", 1)
    for _ in range(4):
        write("needle")
    listing = store.search_memory(MemoryQuery("needle", (WORK,)))
    assert next(listing).item.id == 4
    store.update_memory_entry(2, MemoryChange(pinned=True))
    store.delete_memory_entry(3)
    assert [entry.id for entry in items(listing)] == [1]


def test_entries_that_are_gone_before_they_are_loaded_leave_their_place_to_the_next(
    store, write, monkeypatch
):
    monkeypatch.setattr(memory_search, "_PAGE", 1)
    for _ in range(12):
        write("needle")
    listing = store.search_memory(MemoryQuery("needle", (WORK,)), limit=4)
    first = next(listing)
    assert first.item.id == 12
    store.update_memory_entry(11, MemoryChange(pinned=True))
    for number in (10, 8, 5):
        store.delete_memory_entry(number)
    rest = list(listing)
    assert [placed.item.id for placed in rest] == [9, 7, 6, 4]
    again = store.search_memory(MemoryQuery("needle", (WORK,)), rest[2].cursor)
    assert [placed.item.id for placed in again] == [4, 3, 2, 1]
