"""What a sweep reads, writes and survives (behaviour B4)."""

from __future__ import annotations

import os

import apsw
import pytest

from flue_grpc.agentindex import index_rows, local_sweep
from flue_grpc.agentindex import sweep as sweeping
from flue_grpc.agentindex.catalog import Catalog
from flue_grpc.agentindex.discovery import discover
from flue_grpc.agentindex.index_file import open_index_file
from flue_grpc.limits import HEAD_BYTES
from tests.unit.agentindex.logs import log
from tests.unit.agentindex.test_usage import Shelf
from tests.unit.agentindex.work import Work


@pytest.fixture
def shelf(tmp_path):
    shelf = Shelf(tmp_path)
    yield shelf
    shelf.close()


@pytest.fixture
def work(monkeypatch, shelf):
    return Work(monkeypatch, shelf.home.path)


def tokens(shelf, name):
    session = shelf.catalog.get(("logs", name))
    return None if session is None else session.summary.tokens.input


def restored(shelf):
    """What another process would load."""
    catalog = Catalog()
    with shelf.file.reader() as db:
        catalog.restore(index_rows.load_entries(db))
    return {s.key: (s.summary, s.changed) for s in catalog.view().sessions}


def present(shelf):
    return {s.key: (s.summary, s.entry.changed) for s in shelf.catalog.view().sessions}


def test_a_warm_sweep_opens_nothing_and_reads_nothing(shelf, work):
    for number in range(20):
        shelf.home.write(f"logs/a/{number}.jsonl", log(t=number), tail=log())
    shelf.sweep()
    assert len(work.opened) == 20
    work.reset()
    shelf.sweep()
    assert (work.opened, work.read) == ([], 0)


def test_an_append_reads_only_the_tail_and_two_marks(shelf, work):
    line = log(t=1, key="k" * 1000)
    shelf.home.write("logs/a/x.jsonl", *[line] * 1000)
    shelf.home.write("logs/a/y.jsonl", line)
    shelf.sweep()
    work.reset()
    shelf.home.append("logs/a/x.jsonl", log(t=2))
    shelf.sweep()
    assert work.opened == [str(shelf.home.path / "logs/a/x.jsonl")]
    assert work.read <= len(log(t=2)) + 1 + 3 * HEAD_BYTES


def test_what_was_swept_is_there_after_a_restart(shelf):
    shelf.home.write("logs/a/x.jsonl", log(t=1, **{"in": 1}))
    shelf.home.write("logs/a/none.jsonl", log(t=1))
    shelf.sweep()
    assert restored(shelf) == present(shelf)
    catalog = Catalog()
    with shelf.file.reader() as db:
        catalog.restore(index_rows.load_entries(db))
    assert discover(shelf.home.roots, catalog.known).dirty == []


def test_a_rest_does_not_change_the_result(shelf, monkeypatch):
    rests = []
    monkeypatch.setattr("time.sleep", rests.append)
    shelf.home.write("logs/a/x.jsonl", *[log(t=1, **{"in": 1})] * 600)
    seen = discover(shelf.home.roots, {})
    shelf.local.run(seen.dirty, [], rest=0.5)
    assert (tokens(shelf, "x"), rests) == (600, [0.5] * 3)


def test_vanished_and_unreadable_files_are_dropped(shelf, monkeypatch):
    for name in "xyz":
        shelf.home.write(f"logs/a/{name}.jsonl", log(t=1))
    shelf.sweep()
    (shelf.home.path / "logs/a/x.jsonl").unlink()
    (shelf.home.path / "logs/a/y.jsonl").chmod(0o200)
    plain = os.open

    def refusing(path, flags, *more):
        if str(path).endswith("y.jsonl"):
            raise PermissionError
        return plain(path, flags, *more)

    monkeypatch.setattr(os, "open", refusing)
    shelf.sweep()
    assert [tokens(shelf, name) for name in "xyz"] == [None, None, 0]
    assert restored(shelf) == present(shelf)


def test_a_failing_parser_drops_its_file_only(shelf, caplog):
    shelf.home.write("logs/a/x.jsonl", log(t=1))
    shelf.home.write("logs/a/y.jsonl", log(t=1))
    shelf.sweep()
    shelf.home.append("logs/a/x.jsonl", log(broken=True))
    shelf.home.append("logs/a/y.jsonl", log(**{"in": 5}))
    shelf.sweep()
    assert [tokens(shelf, name) for name in "xy"] == [None, 5]


class TestAnotherWriter:
    """Whoever holds the file delays the writing, never the list."""

    @pytest.fixture(autouse=True)
    def impatient(self, monkeypatch):
        monkeypatch.setattr(local_sweep, "QUICK_WRITE_MS", 0)
        monkeypatch.setattr(local_sweep, "BUSY_TIMEOUT_MS", 0)

    @pytest.fixture
    def other(self, shelf):
        db = shelf.file.writer()
        yield db
        db.close()

    def test_the_list_does_not_wait(self, shelf, other):
        shelf.home.write("logs/a/x.jsonl", log(t=1, **{"in": 1}))
        other.execute("begin immediate")
        shelf.sweep()
        assert tokens(shelf, "x") == 1
        assert restored(shelf) == {}
        other.execute("rollback")
        shelf.sweep()
        assert restored(shelf) == present(shelf)

    def test_it_is_written_when_the_other_is_done(self, shelf, other, monkeypatch):
        shelf.home.write("logs/a/x.jsonl", log(t=1, **{"in": 1}))
        other.execute("begin immediate")
        plain, shown = sweeping.write_batch, []

        def yielding(db, batch):
            if shown:
                other.execute("rollback")
            shown.append(tokens(shelf, "x"))
            plain(db, batch)

        monkeypatch.setattr(local_sweep, "write_batch", yielding)
        shelf.sweep()
        assert shown == [None, 1]
        assert restored(shelf) == present(shelf)

    def test_what_was_not_written_is_appended_to_soundly(self, shelf, other):
        shelf.home.write("logs/a/x.jsonl", log(t=1, key="k", **{"in": 1}))
        shelf.sweep()
        other.execute("begin immediate")
        shelf.home.append("logs/a/x.jsonl", log(t=2, key="k", **{"in": 5}))
        shelf.sweep()
        assert tokens(shelf, "x") == 5
        other.execute("rollback")
        shelf.home.append("logs/a/x.jsonl", log(t=3, key="k", **{"in": 7}))
        shelf.sweep()
        assert tokens(shelf, "x") == 7
        assert shelf.table() == [(7, None, 1, 3)]
        assert restored(shelf) == present(shelf)


class TestFaults:
    def fail(self, monkeypatch, error, times=1):
        plain = index_rows.write_draft
        left = [times]

        def failing(db, draft):
            plain(db, draft)
            if left[0]:
                left[0] -= 1
                raise error

        monkeypatch.setattr(index_rows, "write_draft", failing)

    @pytest.mark.parametrize("error", [apsw.FullError("full"), apsw.IOError("I/O")])
    def test_a_failed_write_is_made_good_by_the_next_sweep(self, shelf, monkeypatch, error, caplog):
        shelf.home.write("logs/a/x.jsonl", log(t=1, **{"in": 1}))
        self.fail(monkeypatch, error)
        shelf.sweep()
        assert (tokens(shelf, "x"), restored(shelf)) == (1, {})
        assert "cannot be written" in caplog.text
        shelf.sweep()
        assert restored(shelf) == present(shelf)

    def test_a_damaged_file_is_made_anew_and_filled_again(self, shelf, monkeypatch, caplog):
        for name in "xy":
            shelf.home.write(f"logs/a/{name}.jsonl", log(t=1, key="k", **{"in": 1}))
        shelf.sweep()
        before = shelf.file.path.stat().st_ino
        shelf.home.append("logs/a/x.jsonl", log(t=2, key="k", **{"in": 3}))
        self.fail(monkeypatch, apsw.CorruptError("malformed"))
        shelf.sweep()
        assert "made anew" in caplog.text
        assert shelf.file.path.stat().st_ino != before
        assert [tokens(shelf, name) for name in "xy"] == [3, 1]
        shelf.sweep()
        assert restored(shelf) == present(shelf)
        assert shelf.table("session") == [("logs:x", 3, None, 1, 2), ("logs:y", 1, None, 1, 1)]
        assert min(entry.tid for entry in shelf.catalog.vanished(set())) > 2

    def test_damage_met_while_parsing_is_mended_too(self, shelf, monkeypatch, caplog):
        shelf.home.write("logs/a/x.jsonl", log(t=1, **{"in": 1}))
        shelf.sweep()
        shelf.home.append("logs/a/x.jsonl", log(t=2, **{"in": 3}))

        def failing(*_):
            monkeypatch.undo()
            raise apsw.CorruptError("malformed")

        monkeypatch.setattr(index_rows, "load_state", failing)
        shelf.sweep()
        assert "made anew" in caplog.text
        shelf.sweep()
        assert tokens(shelf, "x") == 4
        assert restored(shelf) == present(shelf)

    def test_so_is_one_that_somebody_overwrote(self, shelf, caplog):
        shelf.home.write("logs/a/x.jsonl", *[log(t=1, key=str(n)) for n in range(2000)])
        shelf.sweep()
        shelf.close()
        shelf.file.path.write_bytes(b"\0" * shelf.file.path.stat().st_size)
        shelf.file = open_index_file(shelf.home.directory, str(shelf.home.path), ())
        assert restored(shelf) == {}


def test_closing_ends_a_large_parse(shelf, monkeypatch):
    shelf.home.write("logs/a/x.jsonl", *[log(t=1, **{"in": 1})] * 2000)
    monkeypatch.setattr(shelf.local, "_is_stopping", lambda: True)
    shelf.sweep()
    assert (tokens(shelf, "x"), restored(shelf)) == (None, {})


def test_batches_are_bounded_in_files_and_bytes(shelf, monkeypatch):
    monkeypatch.setattr(sweeping, "SWEEP_COMMIT_BYTES", 100)
    for number in range(7):
        path = shelf.home.write(f"logs/a/{number}.jsonl", b"x" * (89 if number == 2 else 9))
        os.utime(path, (number, number))
    seen = discover(shelf.home.roots, {})
    found = list(sweeping.batches(seen.dirty, shelf.local._intake, lambda _: None, 3))
    assert [batch.files for batch in found] == [3, 2, 2]
    assert [entry.record.source.id for batch in found for entry in batch.entries] == list("6543210")


def test_nothing_below_the_roots_is_changed(shelf):
    def tree():
        return {
            str(path): (path.read_bytes() if path.is_file() else None, path.lstat()[:8])
            for path in sorted(shelf.home.path.rglob("*"))
        }

    shelf.home.write("logs/a/x.jsonl", log(t=1), tail=b"{")
    shelf.home.write("logs/a/y.jsonl", b"\xff\0")
    before = tree()
    shelf.sweep().sweep()
    shelf.rows("day")
    assert tree() == before
