"""What the RANKED index has, however it came to be there (behaviour B7)."""

from __future__ import annotations

import os

import pytest

from flue_grpc import limits
from flue_grpc.agentindex import ranked_index
from flue_grpc.agentindex.ranked_index import sort_of, sorts_of
from flue_grpc.errors import CancelledError
from tests.unit.agentindex.logs import SECOND
from tests.unit.agentindex.talks import talk


def count(desk, query="word"):
    return len(desk.hits(query, include_subagents=True, limit=1000))


def test_each_message_with_text_has_a_row(desk):
    desk.write(
        "a/x",
        talk("word one", t=1),
        talk("", t=2),
        talk("word two", role="assistant", kind="thinking", t=3) + talk("word three"),
    )
    desk.settle()
    first = len(talk("word one", t=1)) + 1
    third = first + len(talk("", t=2)) + 1
    rows = [row[1:] for row in desk.rows()]
    thinking = sort_of("assistant", "thinking")
    assert rows == [
        (0, 0, SECOND, sort_of("user", "text"), 1),
        (third, 0, 3 * SECOND, thinking, 1),
        (third, 1, None, sort_of("user", "text"), 1),
    ]
    assert desk.is_sound()


def test_sorts_tell_every_role_and_kind_apart():
    assert sorted(sorts_of((), ())) == list(range(12))
    assert sorts_of(("user",), ("text",)) == (sort_of("user", "text"),)
    assert len(sorts_of(("user", "system"), ())) == 8
    assert len(sorts_of((), ("tool_call",))) == 3


def test_an_append_adds_its_lines_alone(desk):
    desk.write("a/x", talk("word one"))
    desk.settle()
    before = desk.rows()
    desk.append("a/x", talk("word two"))
    desk.settle()
    assert desk.rows()[:1] == before
    assert desk.rows()[1][5] == 2
    assert desk.texts("word") == ["word two", "word one"]


def test_nothing_new_is_no_fill(desk):
    desk.write("a/x", talk("word"))
    desk.settle()
    before = desk.rows("select * from ranked_fills")
    desk.settle()
    assert desk.rows("select * from ranked_fills") == before


def test_a_whole_object_without_its_newline_is_found(desk):
    desk.write("a/x", talk("word one"), tail=talk("word two"))
    desk.settle()
    assert desk.texts("word") == ["word two", "word one"]
    desk.append("a/x", tail=talk("word three") + b'{"text": "word fo')
    desk.settle()
    assert desk.texts("word") == ["word three", "word two", "word one"]
    desk.append("a/x", tail=b'ur"}\n')
    desk.settle()
    assert desk.texts("word") == ["word four", "word three", "word two", "word one"]
    assert desk.part("a/x").tail == 0
    assert desk.is_sound()


def test_a_rewritten_transcript_is_forgotten_and_read_anew(desk):
    desk.write("a/x", talk("word old"), talk("word older"))
    desk.settle()
    desk.write("a/x", talk("word new, and rather longer than what was there"))
    desk.sweep()
    assert len(desk.work().stale) == 1
    desk.fill()
    assert count(desk) == 1
    assert count(desk, "old*") == 0
    assert len(desk.rows()) == 1
    assert desk.is_sound()


def test_a_vanished_transcript_is_forgotten(desk):
    desk.write("a/x", talk("word"))
    desk.write("a/y", talk("word"))
    desk.settle()
    desk.remove("a/x")
    desk.sweep()
    assert count(desk) == 1
    desk.fill()
    assert len(desk.rows()) == 1
    assert desk.work().stale == ()


def test_much_is_forgotten_in_small_steps(desk, monkeypatch):
    monkeypatch.setattr(ranked_index, "RANKED_PURGE_MESSAGES", 3)
    desk.write("a/x", *[talk(f"word {number}") for number in range(8)])
    desk.settle()
    tid = desk.part("a/x").tid
    db = desk.file.writer()
    left = []
    while not ranked_index.purge(db, tid):
        left.append(db.execute("select count(*) from ranked_messages").get)
    db.close()
    assert left == [5, 2]
    assert desk.rows() == []
    assert desk.is_sound()


def test_what_the_parser_takes_for_granted_may_change(desk):
    desk.write("a/x", talk("word real"), talk("word echo", echo=True))
    desk.settle()
    assert desk.texts("word") == ["word real"]
    desk.append("a/x", talk("word mirror", mirror=True, echo=True))
    desk.settle()
    assert desk.texts("word") == ["word mirror", "word echo"]
    assert desk.is_sound()


def test_a_transcript_beyond_one_ordinal_goes_on_under_the_next(desk, monkeypatch):
    monkeypatch.setattr(limits, "RANKED_PART_MESSAGES", 4)
    monkeypatch.setattr(limits, "RANKED_PORTION_BYTES", 1)
    lines = [talk(f"word {number}") for number in range(10)]
    desk.write("a/x", *lines[:3])
    desk.settle()
    desk.append("a/x", *lines[3:], tail=talk("word tail"))
    desk.settle()
    expected = [f"word {number}" for number in range(10)] + ["word tail"]
    assert desk.texts("word") == expected[::-1]
    assert [row[0] for row in desk.rows("select messages + tail from ranked_parts")] == [4, 4, 3]
    desk.append("a/x", tail=b"\n")
    desk.append("a/x", *lines[:2])
    desk.settle()
    assert count(desk) == 13
    assert desk.is_sound()
    desk.remove("a/x")
    desk.settle()
    assert desk.rows() == []
    assert desk.rows("select * from ranked_parts") == []


def test_a_line_of_more_messages_than_an_ordinal_has_takes_several(desk, monkeypatch):
    monkeypatch.setattr(limits, "RANKED_PART_MESSAGES", 4)
    said = [talk(f"word {number}", t=number) for number in range(10)]
    desk.write("a/x", talk("first"), b"".join(said), tail=b"".join(said[:6]))
    desk.settle()
    parts = desk.rows("select messages, tail from ranked_parts order by ordinal")
    assert parts == [(4, 0), (4, 0), (3, 0), (0, 4)]
    assert desk.is_sound()
    desk.append("a/x", tail=b"\n")
    desk.settle()
    assert count(desk) == 16
    assert desk.is_sound()
    offset = len(talk("first")) + 1
    assert sorted(index for _, at, index in desk.found("word") if at == offset) == [*range(10)]
    desk.write("a/x", talk("word"))
    desk.settle()
    assert count(desk) == len(desk.rows()) == 1


def test_what_is_committed_stays_when_the_rest_is_called_off(desk, monkeypatch):
    monkeypatch.setattr(limits, "RANKED_COMMIT_MESSAGES", 2)
    monkeypatch.setattr(limits, "RANKED_PORTION_BYTES", 1)
    desk.write("a/x", *[talk(f"word {number}") for number in range(9)])
    desk.sweep()
    calls = []

    def pace():
        calls.append(None)
        if len(calls) == 7:
            raise CancelledError("enough")

    with pytest.raises(CancelledError):
        desk.fill(pace)
    part = desk.part("a/x")
    assert part.messages == 4
    assert count(desk) == 4
    desk.fill()
    assert desk.texts("word") == [f"word {number}" for number in range(9)][::-1]
    assert desk.is_sound()


def test_a_transaction_that_took_long_enough_is_committed(desk, monkeypatch):
    monkeypatch.setattr(limits, "RANKED_PORTION_BYTES", 1)
    monkeypatch.setattr(limits, "RANKED_YIELD_SECONDS", 0.0)
    lines = [talk(f"word {number}") for number in range(3)]
    desk.write("a/x", *lines)
    desk.settle()
    assert [row[5] for row in desk.rows()] == [1, 1, 1]
    monkeypatch.setattr(limits, "RANKED_COMMIT_SECONDS", 0.0)
    desk.append("a/x", *lines)
    desk.settle()
    assert [row[5] for row in desk.rows()] == [1, 1, 1, 2, 3, 4]


def test_much_text_is_written_as_soon_as_it_is_held(desk, monkeypatch):
    monkeypatch.setattr(limits, "RANKED_PORTION_BYTES", 1)
    monkeypatch.setattr(limits, "RANKED_COMMIT_BYTES", 10)
    desk.write("a/x", talk("word 1"), talk("word 2"), talk("a long word " * 3), talk("word 3"))
    desk.settle()
    assert [row[5] for row in desk.rows()] == [1, 1, 2, 3]


def test_a_large_fill_ends_in_one_segment(desk, monkeypatch):
    monkeypatch.setattr(limits, "RANKED_PORTION_BYTES", 1)
    monkeypatch.setattr(limits, "RANKED_COMMIT_MESSAGES", 10)
    desk.write("a/x", *[talk(f"word w{number}") for number in range(100)])
    desk.settle()
    segments = "select count(distinct segid) from ranked_index_idx"
    assert desk.rows(segments) > [(1,)]
    monkeypatch.setattr(limits, "RANKED_MERGE_MESSAGES", 10)
    monkeypatch.setattr(limits, "RANKED_MERGE_PAGES", 1)
    desk.append("a/x", *[talk(f"word w{number}") for number in range(10)])
    desk.settle()
    assert desk.rows(segments) == [(1,)]
    assert count(desk) == 110
    assert desk.is_sound()


def test_a_file_that_cannot_be_read_is_left_for_later(desk):
    desk.write("a/x", talk("word"))
    desk.write("a/y", talk("word"))
    desk.sweep()
    desk.remove("a/x")
    desk.fill()
    assert count(desk) == 1
    assert [entry.record.summary.id for entry in desk.work().behind] == ["x"]


def test_a_file_that_was_replaced_is_left_to_the_sweep(desk):
    desk.write("a/x", talk("word one"))
    desk.sweep()
    desk.write("a/x", talk("another word, and more of it"))
    desk.fill()
    assert desk.rows() == []
    desk.settle()
    assert desk.texts("word") == ["another word, and more of it"]


def test_a_file_that_was_cut_is_left_to_the_sweep(desk):
    desk.write("a/x", talk("word one"), talk("word two"))
    desk.settle()
    desk.append("a/x", talk("word three"))
    desk.sweep()
    path = desk.home.path / "logs/a/x.jsonl"
    path.write_bytes(path.read_bytes()[:30])
    desk.fill()
    assert len(desk.rows()) == 2


def test_an_empty_transcript_is_done_at_once(desk):
    desk.write("a/x")
    desk.settle()
    assert desk.work().behind == ()


def test_the_newest_transcripts_are_filled_first(desk):
    for name, time in (("old", 10), ("new", 30), ("mid", 20)):
        desk.write(f"a/{name}", talk("word"))
        path = desk.home.path / f"logs/a/{name}.jsonl"
        os.utime(path, (time, time))
    desk.sweep()
    assert [entry.record.summary.id for entry in desk.work().behind] == ["new", "mid", "old"]


def test_portions_of_one_transaction_are_one_segment(desk, monkeypatch):
    """FTS5 writes out what it holds before a statement that may be undone by itself."""
    monkeypatch.setattr(limits, "RANKED_PORTION_BYTES", 1)
    desk.write("a/x", *[talk(f"word {number}") for number in range(20)])
    desk.write("a/y", *[talk(f"word {number}") for number in range(20)], tail=talk("word"))
    desk.settle()
    assert desk.rows("select count(distinct segid) from ranked_index_idx") == [(1,)]
    assert {row[5] for row in desk.rows()} == {1}


def test_a_line_that_an_adapter_fails_at_costs_itself_alone(desk, monkeypatch, caplog):
    plain = desk.adapters["logs"].messages

    def failing(line, offset, context):
        if b"BROKEN" in line:
            raise RecursionError("too deep")
        return plain(line, offset, context)

    monkeypatch.setattr(desk.adapters["logs"], "messages", failing)
    desk.write("a/x", talk("word one"), talk("word BROKEN"), talk("word two"))
    desk.write("a/y", talk("word three"), talk("word BROKEN"))
    desk.settle()
    assert sorted(desk.texts("word")) == ["word one", "word three", "word two"]
    assert caplog.text.count("a transcript of logs cannot be taken in") == 1
    assert desk.work().behind == ()
    assert desk.is_sound()
