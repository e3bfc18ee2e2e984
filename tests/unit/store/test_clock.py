from __future__ import annotations

import apsw
import pytest

from flue_grpc.store.clock import Clock, system_time
from flue_grpc.store.database import Database
from flue_grpc.store.store import Store
from flue_grpc.store.times import from_text, to_text
from flue_grpc.store.values import (
    DEFAULT_SETTINGS,
    MAX_TIME,
    MIN_TIME,
    Draft,
    EntryDraft,
    MemoryChange,
)


def open_at(path, now):
    return Store(Database.open(path, DEFAULT_SETTINGS, lambda: now))


def test_a_time_is_the_system_s_when_that_has_moved_on():
    moments = iter([10, 20, 15, 15, 30])
    clock = Clock(0, lambda: next(moments))
    assert [clock.tick() for _ in range(5)] == [10, 20, 21, 22, 30]


def test_the_age_of_what_is_kept_passes_with_a_clock_that_nobody_sets():
    moments = iter([1_000_000, 1_000_007, 1_000_020])
    clock = Clock(5, lambda: 3, age=100, steady=lambda: next(moments))
    assert (clock.age(), clock.age()) == (107, 120)


def test_the_age_goes_on_after_the_youngest_request(path):
    store = open_at(path, 5000)
    assert store._database.writer._clock.age() >= 5000
    store.create_session("s", "t", "r1")
    store._database.writer.write(lambda batch: batch.execute("UPDATE requests SET created_at = 7"))
    store.close()
    clock = load_at(path, 10**15)
    assert 7 <= clock.age() < 10**15


def load_at(path, now):
    connection = apsw.Connection(str(path))
    clock = Clock.load(connection, lambda: now)
    connection.close()
    return clock


def test_a_clock_at_the_end_of_time_starts_over(path, sql):
    open_at(path, 5000).close()
    sql("UPDATE store_clock SET last = ?", (MAX_TIME,))
    clock = load_at(path, 6000)
    assert [clock.tick(), clock.tick()] == [6000, 6001]
    sql("UPDATE store_clock SET last = ?", (MAX_TIME - 1,))
    assert load_at(path, 6000).tick() == MAX_TIME


def test_a_time_from_elsewhere_moves_it_forward_only():
    clock = Clock(5, lambda: 3)
    clock.advance(2)
    assert clock.tick() == 6
    clock.advance(100)
    assert clock.tick() == 101


def test_it_ends_with_the_last_time_that_can_be_sent():
    assert Clock(MAX_TIME, lambda: 0).tick() == MAX_TIME


def test_the_system_s_time_is_in_microseconds():
    assert 1_700_000_000_000_000 < system_time() < MAX_TIME


def test_every_write_has_a_later_time_though_the_clock_stands_still(path):
    store = open_at(path, 1000)
    session = store.create_session("s", "t")
    messages = store.append_messages("s", [Draft("user", "a"), Draft("user", "b")])
    entry = store.write_memory_entry(EntryDraft("_global", "x"))
    changed = store.update_memory_entry(entry.id, MemoryChange(pinned=True))
    renamed = store.update_session("s", "u")
    times = [session.created_at, *(m.created_at for m in messages), entry.created_at]
    assert [*times, changed.updated_at, renamed.updated_at] == [1000, 1001, 1002, 1003, 1004, 1005]
    store.close()


def test_a_clock_set_back_over_a_restart_changes_no_order(path, items):
    store = open_at(path, 5_000_000)
    store.create_session("early", "t")
    store.create_session("deleted", "t")
    store.append_message("deleted", Draft("user", "x"))
    store.delete_session("deleted")
    store.close()
    store = open_at(path, 10)
    late = store.create_session("late", "t")
    assert late.created_at == 5_000_003
    assert [session.id for session in items(store.list_sessions("all"))] == ["late", "early"]
    store.close()


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_772_366_400_000_001, "2026-03-01T12:00:00.000001Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (MIN_TIME, "0001-01-01T00:00:00.000000Z"),
        (MAX_TIME, "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_times_are_written_in_rfc_3339_and_read_back(moment, text):
    assert to_text(moment) == text
    assert from_text(text) == moment


def test_times_of_other_zones_are_read():
    assert from_text("2026-03-01T13:00:00.000001+01:00") == 1_772_366_400_000_001


@pytest.mark.parametrize(
    "bad", ["", "2026", "2026-03-01T12:00:00", "yesterday", "2026-13-01T00:00:00Z"]
)
def test_what_is_no_time_is_refused(bad):
    with pytest.raises(ValueError, match=r".+"):
        from_text(bad)
