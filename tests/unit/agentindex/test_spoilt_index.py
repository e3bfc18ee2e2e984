"""An index file that holds what was never written there is made anew (behaviour B4).

SQLite itself finds nothing wrong with these: each is a sound database.
"""

from __future__ import annotations

from dataclasses import replace

import apsw
import pytest

from flue_grpc.agentindex import index_rows, ranked_index
from flue_grpc.agentindex.adapters.registry import ADAPTERS
from flue_grpc.agentindex.catalog import Catalog
from flue_grpc.agentindex.damage import as_written, is_damage
from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.index_file import index_path, open_index_file
from flue_grpc.agentindex.lookup import restored_catalog
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.agentindex.sweeper import Sweeper
from flue_grpc.errors import DatabaseIoError
from tests.unit.agentindex.logs import log
from tests.unit.agentindex.real_home import RealHome, claude_answer, claude_prompt
from tests.unit.agentindex.test_lost_index import answers, settle
from tests.unit.agentindex.test_usage import Shelf
from tests.waiting import wait_until

HUGE = 9_000_000_000_000_000_000
SUMMARIES = [
    "update transcripts set record = x'00'",
    "update transcripts set place = x'91'",
    "update transcripts set place = 7",
    f"update transcripts set tid = tid + {HUGE}",
    "update transcripts set tid = -tid",
    f"update transcripts set changed = {HUGE} where tid = 1",
    "update transcripts set changed = -5",
    "update transcripts set changed = 'abc'",
    "update sqlite_sequence set seq = 'abc'",
    f"update sqlite_sequence set seq = {HUGE}",
    "drop table transcripts",
]
USAGE = [
    "update usage set data = x'ff00'",
    "update usage set data = x'91c0'",
    "update usage set data = 'abc'",
    "drop table usage",
]
FOLLOWED = [
    "drop table ranked_parts",
    "delete from ranked_fills",
    "update ranked_fills set number = 'abc'",
    f"update ranked_parts set ordinal = ordinal + {2**40}",
    "update ranked_parts set messages = 'abc'",
]
RANKED = ["delete from ranked_messages", "drop table ranked_messages"]
STATES = ["update states set state = x'93'", "update states set state = 'abc'", "drop table states"]


@pytest.fixture
def home(tmp_path):
    home = RealHome(tmp_path.resolve())
    for number in range(3):
        home.claude(number, claude_prompt("a needle"), claude_answer())
    return home


@pytest.fixture
def settings(home):
    return IndexSettings(str(home.path), home.directory, sweep_interval=1e9)


def spoil(home, sql):
    path = index_path(home.directory, str(home.path))
    with apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE) as db:
        db.execute(sql)


def heals(index, expected):
    """Answers are refused at most while the file is made anew."""

    def is_healed():
        try:
            return answers(index) == expected
        except DatabaseIoError:
            return False

    wait_until(lambda: settle(index) or is_healed())


@pytest.mark.parametrize("sql", SUMMARIES + USAGE + FOLLOWED + RANKED + STATES)
def test_found_at_the_start(home, settings, sql):
    with AgentIndex.open(settings) as index:
        settle(index)
    spoil(home, sql)
    home.claude(1, claude_prompt("a needle"), claude_answer(), claude_prompt("a needle"))
    with AgentIndex.open(settings) as index:
        heals(index, (3, 4, 7))


@pytest.mark.parametrize("sql", USAGE + FOLLOWED + RANKED)
def test_found_in_use(home, settings, sql):
    with AgentIndex.open(settings) as index:
        settle(index)
        spoil(home, sql)
        heals(index, (3, 3, 6))


@pytest.mark.parametrize("worker_bytes", [0, 2**60], ids=["worker", "server"])
@pytest.mark.parametrize("sql", SUMMARIES[-3:] + STATES + USAGE[-1:])
def test_found_by_a_sweep(home, settings, sql, worker_bytes):
    path = home.claude(5, claude_prompt(), claude_answer())
    file = open_index_file(home.directory, str(home.path), ())
    catalog = Catalog()
    tight = replace(settings, sweep_interval=0, worker_bytes=worker_bytes)
    sweeper = Sweeper(tight, ADAPTERS, file, catalog, lambda: None)
    sweeper.start()
    wait_until(lambda: not sweeper.building)
    spoil(home, sql)
    with path.open("ab") as transcript:
        transcript.write(claude_prompt("more", second=9))
    sweeper.demand()

    def stored():
        try:
            with file.reader() as db:
                entries = index_rows.load_entries(db)
                return sorted(entry.record.summary.message_count for entry in entries)
        except apsw.Error:
            return []

    wait_until(lambda: not sweeper.building and stored() == [2, 2, 2, 3])
    sweeper.stop()
    assert len(restored_catalog(file)) == 4
    file.close()


class TestASweepThatMeetsDamage:
    @pytest.fixture
    def shelf(self, tmp_path):
        shelf = Shelf(tmp_path)
        yield shelf
        shelf.close()

    def test_a_block_that_cannot_be_gone_on_with_is_read_again(self, shelf):
        shelf.home.write("logs/a/x.jsonl", log(t=1, **{"in": 1}))
        shelf.sweep()
        before = shelf.file.path.stat().st_ino
        with shelf.file.writer() as db:
            db.execute("update usage set data = 'abc'")
        shelf.home.append("logs/a/x.jsonl", log(t=2, **{"in": 2}))
        shelf.sweep()
        assert shelf.table() == [(3, None, 1, 2)]
        assert shelf.file.path.stat().st_ino == before

    def test_a_ledger_that_is_spoilt_makes_the_file_anew(self, shelf):
        shelf.home.write("logs/a/x.jsonl", log(t=1, key="k", **{"in": 1}))
        shelf.sweep()
        before = shelf.file.path.stat().st_ino
        with shelf.file.writer() as db:
            db.execute("update ledger_blocks set entries = x'93'")
        shelf.home.append("logs/a/x.jsonl", log(t=2, key="k", **{"in": 3}))
        shelf.sweep().sweep()
        assert shelf.file.path.stat().st_ino != before
        assert shelf.table() == [(3, None, 1, 2)]

    def test_a_file_that_could_not_be_made_anew_is_tried_again(self, shelf, monkeypatch):
        shelf.home.write("logs/a/x.jsonl", log(t=1, **{"in": 1}))
        shelf.sweep()
        with monkeypatch.context() as patch:
            patch.setattr(shelf.file, "rebuild", refuse)
            with pytest.raises(OSError, match="full"):
                shelf.local.renew()
            with pytest.raises(OSError, match="full"):
                shelf.sweep()
        shelf.sweep().sweep()
        assert shelf.table() == [(1, None, 1, 1)]


def refuse():
    raise OSError("full")


def test_tids_are_given_out_above_all_that_are_there(tmp_path):
    file = open_index_file(tmp_path, str(tmp_path), ())
    with file.writer() as db:
        db.execute("insert into transcripts values(7, 1, x'00', x'00', x'00')")
        db.execute("update sqlite_sequence set seq = 3")
        assert index_rows.next_tid(db) == 8
    file.close()


def test_ordinals_end_before_a_search_would_need_memory_for_them(tmp_path):
    file = open_index_file(tmp_path, str(tmp_path), (ranked_index.RANKED_TABLES,))
    with file.writer() as db:
        assert ranked_index.new_part(db, 1, 5).kinds == 5
        db.execute(f"update sqlite_sequence set seq = {2**26} where name = 'ranked_parts'")
        with pytest.raises(apsw.CorruptError):
            ranked_index.new_part(db, 1, 0)
    file.close()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (apsw.CorruptError("malformed"), True),
        (apsw.NotADBError("not a database"), True),
        (apsw.SQLError("no such table: usage"), True),
        (apsw.SQLError('fts5: syntax error near "("'), False),
        (apsw.FullError("full"), False),
        (apsw.BusyError("busy"), False),
        (apsw.IOError("I/O"), False),
    ],
)
def test_what_is_damage(error, expected):
    assert is_damage(error) is expected


@pytest.mark.parametrize("error", [TypeError, ValueError, OverflowError, KeyError, IndexError])
def test_a_value_that_was_never_written_is_damage(error):
    with pytest.raises(apsw.CorruptError), as_written():
        raise error("odd")
