from __future__ import annotations

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc import limits
from flue_grpc.errors import DiskFullError
from flue_grpc.store import times, transfer_lines
from flue_grpc.store.clock import system_time
from flue_grpc.store.database import owned
from flue_grpc.store.importing import Importer, Refusal
from flue_grpc.store.store import Store
from flue_grpc.store.values import (
    DEFAULT_SETTINGS,
    Draft,
    Message,
    MessageQuery,
    ToolCall,
)

from .transfers import exported, head_of, imported, line_of


def everything(store):
    sessions = [p.item for p in store.list_sessions("all")]
    messages = {s.id: [p.item for p in store.list_messages(s.id)] for s in sessions}
    return sessions, messages


def without_ids(messages):
    return {
        name: [[getattr(m, f) for f in Message.__struct_fields__ if f != "id"] for m in listed]
        for name, listed in messages.items()
    }


def test_an_import_of_an_export_is_the_same_but_for_message_ids(filled, target):
    lines = exported(filled)
    result = imported(target, lines)
    assert (result.sessions, result.messages, result.refusals) == (3, 5, ())
    again = Store.open(target)
    sessions, messages = everything(again)
    before_sessions, before_messages = everything(filled)
    assert sessions == before_sessions
    assert without_ids(messages) == without_ids(before_messages)
    assert [message.id for message in messages["a talk"]] == [1, 2, 3, 4]
    assert b"".join(exported(again)).count(b"\n") == len(lines)
    again.close()


def test_what_was_imported_can_be_searched(filled, target):
    imported(target, exported(filled))
    store = Store.open(target)
    assert [p.item.message.content for p in store.search_messages(MessageQuery("数 hello"))] == [
        "hello 数据 a\0b"
    ]
    assert len(list(store.search_messages(MessageQuery("noise")))) == 0
    assert len(list(store.search_messages(MessageQuery("noise", scope="all")))) == 1
    assert len(list(store.search_messages(MessageQuery("summary", scope="all")))) == 0
    store.close()


# --- refusals ---


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        ([head_of(), b"{\n"], 2, "not a line of an export"),
        ([head_of(), b'{"type":"other"}\n'], 2, "not a line of an export"),
        ([head_of(), b"\xff\xfe\n"], 2, "not a line of an export"),
        ([head_of(), line_of(unknown=1)], 2, "not a line of an export"),
        ([head_of(), line_of(content=5)], 2, "not a line of an export"),
        (
            [
                head_of(),
                b'{"type":"message","session_id":"s","role":"user","created_at":"2026-01-01T00:00:00Z","content":"\\ud800"}\n',
            ],
            2,
            "not a line of an export",
        ),
        ([head_of(), line_of(session="t")], 2, "a message of another session, t"),
        ([head_of(messages=2), line_of()], 2, "1 of its messages are missing"),
        ([head_of(), line_of(), line_of()], 3, "more messages than the session's line tells"),
        ([head_of(), line_of(created_at="yesterday")], 2, "Invalid isoformat string"),
        ([head_of(), line_of(created_at="2026-01-01T00:00:00")], 2, "names no time zone"),
        ([head_of(messages=-1)], 1, "not a line of an export"),
        ([head_of(created_at="x"), line_of()], 1, "Invalid isoformat string"),
        (
            [head_of("x" * 129), line_of(session="x" * 129)],
            1,
            "a session id has 1 to 128 characters",
        ),
    ],
)
def test_a_faulty_session_is_refused_whole_and_the_next_one_is_imported(
    target, lines, line, reason
):
    result = imported(target, [*lines, head_of("good"), line_of(session="good")])
    assert (result.sessions, result.messages) == (1, 1)
    (refusal,) = result.refusals
    assert refusal.line == line
    assert reason in refusal.reason
    store = Store.open(target)
    assert [p.item.id for p in store.list_sessions("all")] == ["good"]
    assert len(list(store.search_messages(MessageQuery("x")))) == 1
    store.close()


def test_a_session_that_exists_is_refused_and_stays(filled, path):
    before = everything(filled)
    lines = exported(filled)
    filled.close()
    result = imported(path, [*lines, head_of("new", 0)])
    assert [refusal.session_id for refusal in result.refusals] == ["a talk", "empty", "sub"]
    assert {refusal.reason for refusal in result.refusals} == {"a session with this id exists"}
    assert (result.sessions, result.messages) == (1, 0)
    again = Store.open(path)
    sessions, messages = everything(again)
    assert messages.pop("new") == []
    assert ([s for s in sessions if s.id != "new"], messages) == before
    again.close()


@pytest.mark.parametrize("stray", [b"garbage\n", line_of(session="stray")])
def test_a_stray_line_after_a_whole_session_is_not_the_session_s(target, stray):
    result = imported(target, [head_of(), line_of(), stray, head_of("t", 0)])
    assert (result.sessions, [refusal.line for refusal in result.refusals]) == (2, [3])
    assert result.refusals[0].session_id == ""


def test_messages_without_a_session_are_told_once(target):
    result = imported(target, [line_of(), line_of(), line_of()])
    assert result.refusals == (
        Refusal(1, "", "a message without the line of its session before it"),
    )


def test_blank_lines_and_other_time_zones_are_no_fault(target):
    lines = [b"\n", head_of(created_at="2026-01-01T01:00:00+01:00"), b"  \n", line_of(), b"\r\n"]
    result = imported(target, lines)
    assert (result.sessions, result.refusals) == (1, ())
    store = Store.open(target)
    session = store.get_session("s")
    assert session.created_at == session.updated_at == 1_767_225_600_000_000
    store.close()


def test_a_cut_file_loses_only_its_last_session(filled, target):
    lines = exported(filled)
    lines[-1] = lines[-1][:-10]
    result = imported(target, lines)
    assert (result.sessions, [r.session_id for r in result.refusals]) == (2, ["sub"])


def test_a_message_over_the_limit_is_refused(target, monkeypatch):
    monkeypatch.setattr(limits, "MESSAGE_BYTES", 100)
    result = imported(target, [head_of(), line_of("x" * 200)])
    assert [refusal.reason for refusal in result.refusals] == ["the message is too large"]


def test_roles_of_adopted_messages_are_kept(target):
    assert imported(target, [head_of(), line_of(role="developer")]).refusals == ()
    store = Store.open(target)
    assert [p.item.role for p in store.list_messages("s")] == ["developer"]
    store.close()


def shortly(hours):
    return times.to_text(system_time() + hours * 3600 * 1_000_000)


def test_later_writes_come_after_imported_times(target):
    imported(target, [head_of(messages=0, updated_at=shortly(hours=23))])
    store = Store.open(target)
    new = store.create_session("new", "t")
    assert new.created_at == store.get_session("s").updated_at + 1
    store.close()


@pytest.mark.parametrize("late", [shortly(hours=25), "9999-12-31T23:59:59.999999Z"])
def test_imported_times_far_ahead_are_kept_and_move_no_clock(target, items, late):
    lines = [
        head_of("future", created_at=late, updated_at=late),
        line_of(session="future", created_at=late),
    ]
    assert imported(target, [*lines, head_of("near", 0)]).refusals == ()
    store = Store.open(target)
    assert store.get_session("future").updated_at == times.from_text(late)
    made = [store.create_session(name, "t").created_at for name in ("a", "b")]
    assert made[0] < made[1] < system_time() + 1_000_000
    assert [s.id for s in items(store.list_sessions("all"))] == ["future", "b", "a", "near"]
    store.append_message("future", Draft("user", "touched"))
    assert [s.id for s in items(store.list_sessions("all"))] == ["future", "b", "a", "near"]
    store.update_session("b", "t")
    assert [s.id for s in items(store.list_sessions("all"))] == ["b", "future", "a", "near"]
    store.close()


def test_a_session_whose_time_was_far_ahead_is_listed_once_though_it_is_touched(target):
    late = "2150-01-01T00:00:00Z"
    imported(target, [head_of(name, 0, updated_at=late) for name in ("a", "b", "c")])
    store = Store.open(target)
    store.create_session("now", "t")
    first = next(store.list_sessions("all"))
    assert first.item.id == "a"
    store.update_session("a", "touched")
    rest = [placed.item.id for placed in store.list_sessions("all", first.cursor)]
    assert rest == ["b", "c", "now"]
    store.close()


@pytest.mark.parametrize("size", [limits.TITLE_BYTES, limits.TITLE_BYTES + 1])
def test_a_title_over_the_limit_is_refused(target, size):
    result = imported(target, [head_of(messages=0, title="x" * size)])
    refused = [] if size == limits.TITLE_BYTES else ["the title is too large"]
    assert [refusal.reason for refusal in result.refusals] == refused


def test_a_database_that_cannot_be_written_ends_the_import(target):
    with owned(target, DEFAULT_SETTINGS) as connection:
        importer = Importer(connection)
        assert importer.run([head_of("first", 0)]).sessions == 1
        connection.pragma("max_page_count", connection.pragma("page_count") + 2)
        with pytest.raises(DiskFullError):
            importer.run([head_of("second"), line_of("x" * 100_000, "second")])
        assert connection.execute("SELECT id FROM sessions").fetchall() == [("first",)]


def test_a_large_import_checkpoints_on_its_way(target, monkeypatch):
    monkeypatch.setattr(limits, "CHECKPOINT_PAGES", 10)
    lines = [
        part for n in range(30) for part in (head_of(f"s{n}"), line_of("word " * 2000, f"s{n}"))
    ]
    with owned(target, DEFAULT_SETTINGS) as connection:
        assert Importer(connection).run(lines).sessions == 30
        log = target.with_name("store.db-wal")
        assert log.stat().st_size < 60 * 4120


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=15)
calls = st.builds(
    ToolCall, texts, texts, texts, texts,
    st.dictionaries(texts, texts | st.sampled_from(('{"a": [1, 2.50]}', "[1,\n2]")), max_size=3).map(lambda d: tuple(sorted(d.items()))),
)  # fmt: skip
messages = st.builds(
    Message, st.integers(1, 2**62), texts, texts, texts, texts, st.lists(calls, max_size=2).map(tuple),
    texts, texts, st.lists(texts, max_size=2).map(tuple), st.integers(0, 4 * 10**15),
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(message=messages)
def test_any_message_survives_its_line(message):
    raw = transfer_lines.message_line(message)
    assert raw.count(b"\n") == 1
    line = transfer_lines.read_line(raw)
    assert line.session_id == message.session_id
    assert transfer_lines.created_at(line) == message.created_at
    draft = transfer_lines.draft_of(line)
    assert [getattr(draft, f) for f in Draft.__struct_fields__] == [
        getattr(message, f) for f in Draft.__struct_fields__
    ]


def test_the_database_is_sound_after_an_import(filled, target):
    imported(target, [*exported(filled), b"garbage\n"])
    connection = apsw.Connection(str(target))
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
