"""Whatever the file system says of a file, it costs no more than that file (behaviour B4)."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from flue_grpc.agentindex import index_rows, intake, local_sweep
from flue_grpc.agentindex.adapters.registry import ADAPTERS
from flue_grpc.agentindex.catalog import Catalog
from flue_grpc.agentindex.discovery import discover, judge
from flue_grpc.agentindex.index_file import open_index_file
from flue_grpc.agentindex.lookup import restored_catalog
from flue_grpc.agentindex.records import FileKey
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.agentindex.sweeper import Sweeper
from tests.unit.agentindex.logs import log
from tests.unit.agentindex.real_home import RealHome, claude_answer, claude_prompt, session_id
from tests.unit.agentindex.test_usage import Shelf
from tests.waiting import wait_until

MEMORY = Path("/dev/shm")
SECOND_NS = 10**9
# The last three are what the kernel's 64-bit seconds can hold, and no tmpfs can.
KERNEL_SECONDS = (253_402_300_800, -62_135_596_900, -9_300_000_000, 2**63 - 1, -(2**63), 2**62)


@dataclass(frozen=True)
class Status:
    st_size: int = 2**63 - 1
    st_mtime_ns: int = 0
    st_ino: int = 2**64 - 1
    st_mode: int = 0o100644
    st_dev: int = 2**64 - 1


@pytest.fixture
def shelf(tmp_path):
    shelf = Shelf(tmp_path)
    yield shelf
    shelf.close()


def ids(catalog):
    return sorted(session.summary.id for session in catalog.view().sessions)


@pytest.mark.parametrize("seconds", KERNEL_SECONDS)
def test_a_key_holds_what_the_index_file_can(seconds):
    key = FileKey.of(Status(st_mtime_ns=seconds * SECOND_NS + 999_999_999))
    assert (key.size, key.inode, key.mode) == (2**63 - 1, 2**64 - 1, 0o100644)
    assert key.mtime_ns == (2**63 - 1 if seconds > 0 else -(2**63))
    assert index_rows._encode(key)


@pytest.mark.parametrize("seconds", KERNEL_SECONDS)
def test_an_odd_time_is_stored_and_known_again(shelf, monkeypatch, seconds):
    shelf.home.write("logs/a/good.jsonl", log(t=1, **{"in": 1}))
    odd = shelf.home.write("logs/a/odd.jsonl", log(t=2, **{"in": 2}))
    inode = odd.stat().st_ino
    plain = FileKey.of.__func__

    def of(cls, status):
        if status.st_ino != inode:
            return plain(cls, status)
        return plain(cls, Status(status.st_size, seconds * SECOND_NS, inode, status.st_mode))

    def times(status):
        return of(FileKey, status).mtime_ns

    monkeypatch.setattr(FileKey, "of", classmethod(of))
    monkeypatch.setattr("flue_grpc.agentindex.opening.mtime_ns", times)
    shelf.sweep()
    assert ids(shelf.catalog) == ["good", "odd"]
    catalog = Catalog()
    with shelf.file.reader() as db:
        catalog.restore(index_rows.load_entries(db))
    assert discover(shelf.home.roots, catalog.known).dirty == []
    assert judge(shelf.home.roots, str(odd.resolve())).key == catalog.entry(str(odd)).record.key


@pytest.fixture
def in_memory():
    """A directory on a file system whose times are not bounded like those of a disk."""
    if not MEMORY.is_dir():
        pytest.skip("there is no tmpfs")
    base = Path(tempfile.mkdtemp(dir=MEMORY))
    probe = base / "probe"
    probe.touch()
    os.utime(probe, (KERNEL_SECONDS[0], KERNEL_SECONDS[0]))
    if probe.stat().st_mtime != KERNEL_SECONDS[0]:
        shutil.rmtree(base)
        pytest.skip("the file system bounds its times")
    yield base
    shutil.rmtree(base)


@pytest.mark.parametrize("worker_bytes", [0, 2**60], ids=["worker", "server"])
@pytest.mark.parametrize("seconds", KERNEL_SECONDS[:3])
def test_a_file_with_an_odd_time_is_listed_with_all_others(in_memory, worker_bytes, seconds):
    home = RealHome(in_memory)
    odd = home.claude(1, claude_prompt(), claude_answer())
    home.claude(2, claude_prompt(), claude_answer())
    os.utime(odd, (seconds, seconds))
    file = open_index_file(home.directory, str(home.path), ())
    for catalog in (Catalog(), restored_catalog(file)):
        settings = IndexSettings(
            str(home.path), home.directory, sweep_interval=0, worker_bytes=worker_bytes
        )
        sweeper = Sweeper(settings, ADAPTERS, file, catalog, lambda: None)
        try:
            sweeper.start()
            wait_until(lambda one=sweeper: not one.building)
            assert ids(catalog) == [session_id(1), session_id(2)]
        finally:
            sweeper.stop()
    assert ids(restored_catalog(file)) == [session_id(1), session_id(2)]
    file.close()


class TestADraftThatCannotBeWritten:
    """Of a batch the others are written, and what is left out is told once."""

    @pytest.fixture(autouse=True)
    def failing(self, monkeypatch):
        plain = index_rows.write_draft

        def write(db, draft):
            plain(db, draft)
            if draft.entry.record.summary.tokens.input >= 100:
                raise OverflowError("too large")

        monkeypatch.setattr(index_rows, "write_draft", write)

    def restored(self, shelf):
        catalog = Catalog()
        with shelf.file.reader() as db:
            catalog.restore(index_rows.load_entries(db))
        return ids(catalog)

    def test_it_alone_is_left_out(self, shelf, caplog):
        for name, tokens in (("a", 1), ("bad", 100), ("c", 2), ("worse", 200)):
            shelf.home.write(f"logs/a/{name}.jsonl", log(t=1, **{"in": tokens}))
        shelf.sweep().sweep()
        assert ids(shelf.catalog) == self.restored(shelf) == ["a", "c"]
        assert caplog.text.count("a transcript of logs cannot be taken in") == 1
        assert "bad.jsonl" not in caplog.text
        assert sum(row[1] for row in shelf.table("session")) == 3

    @pytest.mark.parametrize("is_rewritten", [False, True])
    def test_so_is_what_was_kept_of_it_before(self, shelf, is_rewritten):
        bad = shelf.home.write("logs/a/bad.jsonl", log(t=1, **{"in": 1}))
        shelf.home.write("logs/a/good.jsonl", log(t=1, **{"in": 1}))
        shelf.sweep()
        if is_rewritten:
            bad.unlink()
        shelf.home.append("logs/a/bad.jsonl", log(t=2, **{"in": 100}))
        shelf.sweep()
        assert ids(shelf.catalog) == self.restored(shelf) == ["good"]
        with shelf.file.reader() as db:
            tids = {tid for _, tid, _ in index_rows.load_blocks(db, 0, 100)}
        assert tids == {shelf.catalog.get(("logs", "good")).entry.tid}

    def test_neither_is_a_part_of_it_that_was_spilled(self, shelf, monkeypatch):
        monkeypatch.setattr("flue_grpc.agentindex.drafts.BLOCKS_SPILL", 2)
        many = [log(t=1, **{"in": 1})] * 256 * 5
        shelf.home.write("logs/a/bad.jsonl", *many)
        shelf.home.write("logs/a/good.jsonl", log(t=1, **{"in": 1}))
        shelf.sweep()
        with shelf.file.reader() as db:
            assert len(index_rows.load_blocks(db, 0, 100)) == 1
        assert ids(shelf.catalog) == self.restored(shelf) == ["good"]


def test_what_cannot_be_spilled_leaves_nothing_behind(shelf, monkeypatch):
    monkeypatch.setattr("flue_grpc.agentindex.drafts.BLOCKS_SPILL", 2)
    plain = index_rows.write_tables

    def failing(db, draft):
        plain(db, draft)
        if draft.entry is None:
            raise OverflowError("too large")

    monkeypatch.setattr(index_rows, "write_tables", failing)
    shelf.home.write("logs/a/bad.jsonl", *[log(t=1, **{"in": 1})] * 256 * 3)
    shelf.home.write("logs/a/good.jsonl", log(t=1, **{"in": 1}))
    shelf.sweep()
    assert ids(shelf.catalog) == ["good"]
    with shelf.file.reader() as db:
        assert len(index_rows.load_blocks(db, 0, 100)) == 1


def test_whatever_ends_a_sweep_ends_its_transaction(shelf, monkeypatch):
    shelf.home.write("logs/a/x.jsonl", log(t=1, **{"in": 1}))
    plain = intake.Intake.take

    def failing(self, found, previous):
        self.db.execute("begin immediate")
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(intake.Intake, "take", failing)
    with pytest.raises(RuntimeError):
        shelf.sweep()
    monkeypatch.setattr(intake.Intake, "take", plain)
    shelf.sweep()
    assert ids(shelf.catalog) == ["x"]


def test_a_fault_of_the_file_as_a_whole_costs_no_draft(shelf, monkeypatch):
    """An error of SQLite is not one draft's: the batch is written again by the next sweep."""
    monkeypatch.setattr(local_sweep, "QUICK_WRITE_MS", 0)
    shelf.home.write("logs/a/x.jsonl", log(t=1, **{"in": 1}))
    plain = index_rows.write_draft

    def failing(db, draft):
        plain(db, draft)
        monkeypatch.setattr(index_rows, "write_draft", plain)
        raise apsw.FullError("full")

    monkeypatch.setattr(index_rows, "write_draft", failing)
    shelf.sweep()
    assert ids(shelf.catalog) == ["x"]
