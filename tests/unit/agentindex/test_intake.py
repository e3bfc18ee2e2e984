"""Parsing on where the last sweep stood equals parsing from zero (behaviour B3, B4)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flue_grpc import limits
from flue_grpc.agentindex import drafts, index_rows, parsing, usage_blocks
from flue_grpc.agentindex.adapters.base import Context
from flue_grpc.agentindex.changes import Stamps
from flue_grpc.agentindex.discovery import judge
from flue_grpc.agentindex.index_file import open_index_file
from flue_grpc.agentindex.intake import Intake
from flue_grpc.agentindex.sweep import Batch, write_batch
from flue_grpc.agentindex.values import TokenUsage
from tests.unit.agentindex.logs import SECOND, Home, log

if TYPE_CHECKING:
    from pathlib import Path


class Shelf:
    """One transcript of a home, taken in step by step into an index file."""

    def __init__(self, base: Path) -> None:
        self.home = Home(base)
        self.file = open_index_file(self.home.directory, str(self.home.path), ())
        self.db = self.file.writer()
        self.entry = None
        self.intake = Intake(self.db, self.home.adapters, Stamps(0), lambda: None, 1)
        self.path = str((self.home.path / "logs/a/x.jsonl").resolve())

    def take(self):
        found = judge(self.home.roots, self.path)
        draft = self.intake.take(found, self.entry)
        if draft is None:
            return None
        write_batch(self.db, Batch(drafts=[draft]))
        self.entry = draft.entry
        return self.entry

    def tables(self):
        """All that is kept of the transcript, but for its number and stamps."""
        tid = self.entry.tid
        blocks = [
            usage_blocks.unpack(usage_blocks.load(data))
            for _, owner, data in index_rows.load_blocks(self.db, 0, 10_000)
            if owner == tid
        ]
        return (
            self.entry.record.summary,
            self.entry.record.standing,
            index_rows.load_state(self.db, self.entry),
            index_rows.load_checkpoints(self.db, self.entry),
            [line for block in blocks for line in block],
            self.ledger(tid),
        )

    def ledger(self, tid):
        """Each entry of the ledger, as it is looked up."""
        query = "select entries from ledger_blocks where tid = ?"
        blocks = [msgspec.msgpack.decode(data) for (data,) in self.db.execute(query, (tid,))]
        rows = self.db.execute("select key from ledger where tid = ?", (tid,))
        keys = {key for (key,) in rows}.union(*blocks)
        return {key: index_rows.load_ledger_entry(self.db, tid, key) for key in keys}

    def close(self):
        self.db.close()
        self.file.close()


@pytest.fixture
def shelf(tmp_path):
    shelf = Shelf(tmp_path)
    yield shelf
    shelf.close()


def cold(base, data):
    """Take all of it in at once, elsewhere."""
    shelf = Shelf(base)
    shelf.home.write("logs/a/x.jsonl", tail=data)
    shelf.take()
    tables = shelf.tables()
    shelf.close()
    return tables


def alike(tables):
    """Leave out what another file of the same bytes differs in."""
    summary, *rest = tables
    return [msgspec.structs.replace(summary, updated_at=0, revision=""), *rest]


OBJECTS = st.one_of(
    st.builds(
        lambda t, tokens, key, model: log(t=t, **{"in": tokens, "key": key, "model": model}),
        st.integers(0, 9),
        st.integers(0, 99),
        st.sampled_from("abc"),
        st.sampled_from(["m", "n"]),
    ),
    st.builds(lambda cost: log(cost=cost), st.floats(0, 1)),
    st.just(log(system=True)),
    st.sampled_from([b"", b"{", b"junk", b'{"t":1']),
)
LINES = st.lists(OBJECTS, min_size=1, max_size=3).map(b"".join)


@given(
    lines=st.lists(LINES, max_size=12),
    tail=LINES,
    cuts=st.lists(st.integers(0, 2000), max_size=6),
    block=st.sampled_from([1, 2, 5, 256]),
)
@example(lines=[log(t=1)], tail=log(t=2), cuts=[5, 8], block=1)
@settings(max_examples=60, deadline=None)
def test_grown_in_any_steps_is_the_same_as_cold(tmp_path_factory, lines, tail, cuts, block):
    base = tmp_path_factory.mktemp("grown")
    data = b"".join(line + b"\n" for line in lines) + tail
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsing, "USAGE_BLOCK_LINES", block)
        shelf = Shelf(base / "steps")
        done = 0
        for cut in sorted({*(cut for cut in cuts if cut < len(data)), len(data)}):
            if shelf.entry is None:
                shelf.home.write("logs/a/x.jsonl", tail=data[:cut])
            else:
                shelf.home.append("logs/a/x.jsonl", tail=data[done:cut])
            done = cut
            shelf.take()
        grown = shelf.tables()
        assert shelf.entry.tid == 1
        shelf.close()
        assert alike(grown) == alike(cold(base / "cold", data))


def test_the_usage_lines_sum_up_to_the_summary(shelf):
    shelf.home.write(
        "logs/a/x.jsonl",
        log(t=1, key="k", model="m", **{"in": 5}),
        log(t=2, key="k", **{"in": 9}),
        log(cost=0.5, **{"in": 1}),
        tail=log(t=3, key="k", **{"in": 10}),
    )
    summary = shelf.take().record.summary
    lines = shelf.tables()[4]
    assert [(line.ts, line.tokens.input, line.cost_usd) for line in lines] == [
        (1 * SECOND, 5, None),
        (2 * SECOND, 4, None),
        (None, 1, 0.5),
        (3 * SECOND, 1, None),
    ]
    assert summary.tokens == TokenUsage(11)
    assert summary.message_count == 4


class TestUnterminatedLastLine:
    """A whole object is read, the state stays before it (behaviour B3)."""

    def test_what_is_glued_to_it_later_counts_once(self, shelf):
        first, second = log(t=1, **{"in": 5}), log(t=2, **{"in": 7})
        shelf.home.write("logs/a/x.jsonl", tail=first)
        assert shelf.take().record.summary.tokens.input == 5
        assert shelf.entry.record.standing.offset == 0
        shelf.home.append("logs/a/x.jsonl", tail=second)
        assert shelf.take().record.summary.tokens.input == 12
        shelf.home.append("logs/a/x.jsonl", b"")
        assert shelf.take().record.summary.tokens.input == 12
        assert shelf.entry.record.standing.offset == len(first + second) + 1

    def test_a_fragment_is_left_for_next_time(self, shelf):
        whole = log(t=2, **{"in": 7})
        shelf.home.write("logs/a/x.jsonl", log(t=1), tail=whole[:-1])
        assert shelf.take().record.summary.message_count == 1
        shelf.home.append("logs/a/x.jsonl", tail=whole[-1:])
        assert shelf.take().record.summary.message_count == 2

    def test_its_model_is_not_kept_until_its_newline(self, shelf):
        shelf.home.write("logs/a/x.jsonl", log(model="m"), tail=log(model="n"))
        shelf.take()
        end = shelf.entry.record.standing.offset
        assert index_rows.load_checkpoints(shelf.db, shelf.entry).at(10_000) == (end, Context("m"))


class TestParsedFromZero:
    def make(self, shelf, *lines):
        path = shelf.home.write("logs/a/x.jsonl", *lines)
        shelf.take()
        return path

    def test_a_file_that_was_rewritten_larger(self, shelf):
        self.make(shelf, log(t=1, **{"in": 5}), log(t=2, **{"in": 6}))
        path = self.make(shelf, log(t=9, **{"in": 1}))
        with path.open("r+b") as file:
            file.write(b"".join(log(t=8, **{"in": 2}) + b"\n" for _ in range(9)))
        summary = shelf.take().record.summary
        assert (summary.tokens.input, summary.message_count) == (18, 9)
        assert shelf.entry.tid == 3

    def test_a_file_rewritten_behind_its_first_bytes(self, shelf, monkeypatch):
        monkeypatch.setattr("flue_grpc.agentindex.parsing.HEAD_BYTES", 16)
        monkeypatch.setattr("flue_grpc.agentindex.opening.HEAD_BYTES", 16)
        path = self.make(shelf, log(t=1, model="m" * 20), log(t=2, **{"in": 6}))
        with path.open("r+b") as file:
            file.seek(-len(log(t=2, **{"in": 6})) - 1, os.SEEK_END)
            file.write(log(t=2, **{"in": 9}) + b"\n" + log(t=3) + b"\n")
        assert shelf.take().record.summary.tokens.input == 9

    def test_a_file_rewritten_in_its_first_bytes_alone(self, shelf, monkeypatch):
        monkeypatch.setattr("flue_grpc.agentindex.parsing.HEAD_BYTES", 16)
        monkeypatch.setattr("flue_grpc.agentindex.opening.HEAD_BYTES", 16)
        path = self.make(shelf, log(t=1, **{"in": 5}), log(t=2, model="m" * 20))
        with path.open("r+b") as file:
            file.write(log(t=8, **{"in": 7}))
        shelf.home.append("logs/a/x.jsonl", log(t=3))
        assert shelf.take().record.summary.tokens.input == 7

    def test_a_file_rewritten_in_its_middle_at_the_same_size(self, shelf, monkeypatch):
        monkeypatch.setattr("flue_grpc.agentindex.parsing.HEAD_BYTES", 16)
        monkeypatch.setattr("flue_grpc.agentindex.opening.HEAD_BYTES", 16)
        first, last = log(t=1, model="m" * 20), log(t=3, model="n" * 20)
        path = self.make(shelf, first, log(t=2, **{"in": 5}), last)
        path.write_bytes(b"\n".join([first, log(t=2, **{"in": 6}), last, b""]))
        os.utime(path, ns=(0, 10**18))
        assert shelf.take().record.summary.tokens.input == 6

    def test_a_file_that_shrank(self, shelf):
        path = self.make(shelf, log(t=1, **{"in": 5}), log(t=2, **{"in": 6}))
        os.truncate(path, len(log(t=1, **{"in": 5})) + 1)
        assert shelf.take().record.summary.tokens.input == 5

    def test_a_file_of_the_same_size_with_another_time(self, shelf):
        path = self.make(shelf, log(t=1, **{"in": 5}))
        with path.open("r+b") as file:
            file.write(log(t=1, **{"in": 6}))
        os.utime(path, ns=(0, 10**18))
        assert shelf.take().record.summary.tokens.input == 6

    def test_a_file_of_another_inode(self, shelf):
        path = self.make(shelf, log(t=1, **{"in": 5}))
        other = shelf.home.write("logs/a/y", log(t=1, **{"in": 5}), log(t=2))
        other.rename(path)
        shelf.take()
        assert shelf.entry.tid == 2

    def test_nothing_of_the_former_one_is_left(self, shelf):
        path = self.make(shelf, log(t=1, key="k", model="m"), log(t=2, key="j", model="n"))
        os.truncate(path, 0)
        shelf.take()
        for table in ("usage", "checkpoints", "ledger", "ledger_blocks"):
            assert shelf.db.execute(f"select count(*) from {table}").get == 0
        for table in ("transcripts", "states"):
            assert shelf.db.execute(f"select tid from {table}").get == 2

    def test_a_file_whose_state_the_index_lost(self, shelf):
        self.make(shelf, log(t=1, **{"in": 5}))
        shelf.db.execute("update states set state = x'c1'")
        shelf.home.append("logs/a/x.jsonl", log(t=2, **{"in": 6}))
        assert shelf.take().record.summary.tokens.input == 11
        assert shelf.entry.tid == 2

    def test_a_file_whose_row_is_of_another_sweep(self, shelf):
        self.make(shelf, log(t=1, **{"in": 5}))
        shelf.db.execute("update states set changed = changed - 1")
        shelf.home.append("logs/a/x.jsonl", log(t=2, **{"in": 6}))
        assert shelf.take().record.summary.tokens.input == 11
        assert shelf.entry.tid == 2


def test_a_changed_mode_alone_reads_no_line_again(shelf):
    path = shelf.home.write("logs/a/x.jsonl", log(t=1, **{"in": 5}))
    shelf.take()
    path.chmod(0o400)
    assert shelf.take().record.summary.tokens.input == 5
    assert (shelf.entry.tid, shelf.entry.record.key.mode) == (1, path.stat().st_mode)


def test_a_file_cut_while_it_is_read_is_read_again_next_time(shelf, monkeypatch):
    path = shelf.home.write("logs/a/x.jsonl", log(t=1), log(t=2))
    plain = os.preadv

    def cutting(fd, buffers, offset):
        os.truncate(path, len(log(t=1)) + 1)
        return plain(fd, buffers, offset)

    monkeypatch.setattr(os, "preadv", cutting)
    entry = shelf.take()
    assert entry.record.summary.message_count == 1
    assert entry.record.key.size == -1


def test_a_parser_that_fails_costs_its_file_only(shelf, caplog):
    shelf.home.write("logs/a/x.jsonl", log(broken=True))
    assert shelf.take() is None
    assert "the parser fails" in caplog.text
    assert shelf.take() is None
    assert caplog.text.count("a transcript of logs cannot be taken in") == 1


def test_an_error_of_the_disk_costs_its_file_only(shelf, monkeypatch):
    shelf.home.write("logs/a/x.jsonl", log(t=1))

    def failing(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "preadv", failing)
    assert shelf.take() is None


class TestManyCheckpoints:
    def contexts(self, shelf):
        return index_rows.load_checkpoints(shelf.db, shelf.entry)

    def test_each_change_of_the_model_is_exact(self, shelf):
        lines = [log(model="m"), log(), log(model="n"), log(), log(model="m")]
        shelf.home.write("logs/a/x.jsonl", *lines)
        shelf.take()
        found = self.contexts(shelf)
        offset = 0
        for line, model in zip(lines, ["", "m", "m", "n", "n"], strict=True):
            assert found.at(offset) == (offset, Context(model))
            offset += len(line) + 1
        assert found.at(offset) == (offset, Context("m"))
        assert found.at(offset + 99) == (offset, Context("m"))

    @pytest.mark.parametrize("names", ["abcdefabcdefabcdef", "abcdc", "abcd", "abc"])
    def test_beyond_their_limit_they_are_sparse_but_never_wrong(self, shelf, monkeypatch, names):
        monkeypatch.setattr(parsing, "EXACT_CHECKPOINTS", 3)
        monkeypatch.setattr(parsing, "CHECKPOINT_BYTES", 100)
        lines = [log(model=name) for name in names] + [log()] * 50
        shelf.home.write("logs/a/x.jsonl", *lines)
        shelf.take()
        found = self.contexts(shelf)
        assert len(found.offsets) < 30
        model, offset = "", 0
        models = {0: ""}
        for line in lines:
            offset += len(line) + 1
            model = line[11:12].decode() if b"model" in line else model
            models[offset] = model
        for at, model in models.items():
            position, context = found.at(at)
            assert models[position] == context.model
            assert at - position <= 100 + len(lines[0]) + 1
            if at <= found.exact_until:
                assert (position, context.model) == (at, model)


class TestLedger:
    """What a cold parse counted lies in blocks, what an append counts in rows before them."""

    def test_an_append_looks_up_what_a_cold_parse_wrote(self, shelf, tmp_path):
        lines = [log(t=n, key=str(n), **{"in": n}) for n in range(100)]
        more = [log(t=n, key=str(n), **{"in": 60}) for n in range(0, 130, 5)]
        shelf.home.write("logs/a/x.jsonl", *lines)
        shelf.take()
        ledger = shelf.ledger(1)
        assert sorted(entry.input for entry in ledger.values()) == list(range(100))
        assert shelf.db.execute("select count(*) from ledger_blocks").get == 4
        assert shelf.db.execute("select count(*) from ledger").get == 0
        assert index_rows.load_ledger_entry(shelf.db, 1, min(ledger) - 1) is None
        assert index_rows.load_ledger_entry(shelf.db, 1, max(ledger) + 1) is None
        shelf.home.append("logs/a/x.jsonl", *more)
        shelf.take()
        assert shelf.db.execute("select count(*) from ledger_blocks").get == 4
        whole = b"".join(line + b"\n" for line in [*lines, *more])
        assert alike(shelf.tables()) == alike(cold(tmp_path / "cold", whole))


class TestSpilling:
    """A transcript too large for memory goes to the file while it is parsed."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        monkeypatch.setattr(drafts, "LEDGER_SPILL_ENTRIES", 3)
        monkeypatch.setattr(drafts, "BLOCKS_SPILL", 2)
        monkeypatch.setattr(parsing, "USAGE_BLOCK_LINES", 2)

    def lines(self, count):
        return [log(t=n, key=str(n % 7), model="mn"[n % 2], **{"in": n}) for n in range(count)]

    def test_the_result_is_the_same(self, shelf, tmp_path, monkeypatch):
        lines = self.lines(40)
        shelf.home.write("logs/a/x.jsonl", *lines[:25])
        shelf.take()
        shelf.home.append("logs/a/x.jsonl", *lines[25:])
        shelf.take()
        monkeypatch.setattr(drafts, "LEDGER_SPILL_ENTRIES", limits.LEDGER_SPILL_ENTRIES)
        monkeypatch.setattr(drafts, "BLOCKS_SPILL", limits.BLOCKS_SPILL)
        whole = b"".join(line + b"\n" for line in lines)
        assert alike(shelf.tables()) == alike(cold(tmp_path / "cold", whole))

    def test_memory_stays_small(self, shelf, monkeypatch):
        sizes = []
        plain = index_rows.write_tables

        def watched(db, draft):
            sizes.append((len(draft.blocks), len(draft.ledger.fresh)))
            plain(db, draft)

        monkeypatch.setattr(index_rows, "write_tables", watched)
        shelf.intake._buffer = bytearray(100)
        lines = [log(t=n, key=str(n)) for n in range(200)]
        shelf.home.write("logs/a/x.jsonl", *lines)
        shelf.take()
        assert max(blocks for blocks, _ in sizes) <= 2
        assert max(entries for _, entries in sizes) <= 9
        assert sum(entries for _, entries in sizes) == 200

    def test_a_failed_parse_leaves_nothing(self, shelf, caplog):
        shelf.intake._buffer = bytearray(100)
        shelf.home.write("logs/a/x.jsonl", *self.lines(40), log(broken=True))
        assert shelf.take() is None
        write_batch(shelf.db, Batch())
        assert shelf.db.execute("select count(*) from usage").get == 0
        for table in ("ledger", "ledger_blocks"):
            assert shelf.db.execute(f"select count(*) from {table}").get == 0


def test_stamps_never_repeat_and_never_go_back(monkeypatch):
    stamps = Stamps(10**18)
    assert [stamps.next(), stamps.next()] == [10**18 + 1, 10**18 + 2]
    monkeypatch.setattr("time.time_ns", lambda: 5_000)
    assert [replace_now(stamps), stamps.next()] == [5, 6]


def replace_now(stamps):
    stamps.last = 0
    return stamps.next()
