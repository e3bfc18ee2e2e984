"""The index as a whole, over transcripts of the real tools (behaviour B2 to B5)."""

from __future__ import annotations

import os
import threading

import apsw
import pytest

from flue_grpc.agentindex import index_rows
from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.agentindex.snapshots import SnapshotFilter
from flue_grpc.agentindex.usage import UsageQuery
from flue_grpc.agentindex.values import Resume, TokenUsage
from flue_grpc.cancel import NEVER
from flue_grpc.errors import (
    AlreadyRunningError,
    BadCombinationError,
    DatabaseIoError,
    TranscriptNotFoundError,
    UnknownToolError,
)
from tests.unit.agentindex.real_home import (
    RealHome,
    claude_answer,
    claude_prompt,
    line,
    session_id,
)
from tests.unit.agentindex.work import Work
from tests.waiting import wait_until

PATIENCE = 20.0
CLAUDE, CODEX, PI = session_id(1), session_id(2), session_id(3)


@pytest.fixture
def home(tmp_path):
    home = RealHome(tmp_path.resolve())
    home.claude(1, claude_prompt(), claude_answer(2), claude_answer(61))
    home.claude(1, claude_answer(7), below=f"{CLAUDE}/subagents/agent-a.jsonl")
    home.codex(2)
    home.pi(3)
    return home


@pytest.fixture
def open_index(home):
    opened = []

    def open_index(**settings):
        wanted = {"sweep_interval": 0.0, **settings}
        opened.append(AgentIndex.open(IndexSettings(str(home.path), home.directory, **wanted)))
        return opened[-1]

    yield open_index
    for index in opened:
        index.close()


def settled(index):
    index.poke()
    wait_until(lambda: not (index.building or index.lags))
    return index


@pytest.fixture
def index(open_index):
    return settled(open_index())


def listed(index, **wanted):
    items = index.snapshot(SnapshotFilter(**wanted), None, NEVER).items
    return [placed.item for placed in items]


def page(index, tool, name, **wanted):
    asked = {"offset": None, "direction": "forward", "limit": 100, "revision": "", **wanted}
    return index.read_page(tool, name, cancel=NEVER, **asked)


class TestSnapshot:
    def test_every_tool_is_listed_newest_first(self, index):
        found = [(s.tool, s.id, s.title, s.tokens, s.cost_usd) for s in listed(index)]
        assert found == [
            ("codex", CODEX, "Port this to Rust", TokenUsage(70, 7, 30), None),
            ("claude", CLAUDE, "Why does it time out?", TokenUsage(4, 61, 900, 120), None),
            ("pi", PI, "hello", TokenUsage(10, 20, 5, 2), 0.25),
        ]

    def test_subagents_are_hidden_counted_and_added_up(self, index):
        view = index.snapshot(SnapshotFilter(), None, NEVER)
        assert view.hidden_subagents == 1
        shown = listed(index, include_subagents=True)
        (agent,) = (summary for summary in shown if summary.is_subagent)
        assert (agent.id, agent.parent_id, agent.resume) == (f"{CLAUDE}.agent-a", CLAUDE, None)
        assert index.resolve("claude", CLAUDE).subagent_tokens == agent.tokens

    def test_the_first_list_may_be_empty_but_says_so(self, home, open_index, monkeypatch):
        gate = threading.Event()
        plain = os.scandir

        def waiting(path):
            assert gate.wait(PATIENCE)
            return plain(path)

        monkeypatch.setattr(os, "scandir", waiting)
        index = open_index()
        view = index.snapshot(SnapshotFilter(), None, NEVER)
        assert (view.building, list(view.items)) == (True, [])
        with pytest.raises(TranscriptNotFoundError) as raised:
            index.resolve("claude", CLAUDE)
        assert raised.value.metadata == {"building": "true"}
        gate.set()
        wait_until(lambda: not index.building)
        assert len(listed(index)) == 3

    def test_it_pokes_the_sweep(self, home, index):
        home.claude(9, claude_prompt())
        index.snapshot(SnapshotFilter(), None, NEVER)
        wait_until(lambda: index.find("claude", session_id(9)) is not None)

    def test_after_a_restart_it_is_there_at_once(self, home, index, open_index, monkeypatch):
        before = listed(index, include_subagents=True)
        index.close()
        gate = threading.Event()
        plain = os.scandir
        monkeypatch.setattr(os, "scandir", lambda path: gate.wait(PATIENCE) and plain(path))
        again = open_index()
        assert listed(again, include_subagents=True) == before
        gate.set()

    def test_a_place_in_it_outlives_a_restart(self, index, open_index):
        first = next(index.snapshot(SnapshotFilter(), None, NEVER).items)
        index.close()
        again = settled(open_index())
        rest = again.snapshot(SnapshotFilter(), first.cursor, NEVER).items
        assert [placed.item.tool for placed in rest] == ["claude", "pi"]

    def test_a_span_that_ends_before_it_begins_is_refused(self, index):
        for since, until in ((5, 5), (6, 5)):
            with pytest.raises(BadCombinationError):
                index.snapshot(SnapshotFilter(since=since, until=until), None, NEVER)
            with pytest.raises(BadCombinationError):
                index.usage(UsageQuery(since=since, until=until), None, NEVER)


class TestResolveAndRead:
    def test_an_unknown_tool_is_told_from_an_unknown_session(self, index):
        with pytest.raises(UnknownToolError) as raised:
            index.resolve("cursor", CLAUDE)
        assert (raised.value.field, raised.value.metadata) == ("tool", {"tool": "cursor"})
        with pytest.raises(TranscriptNotFoundError):
            index.resolve("claude", CODEX)
        with pytest.raises(UnknownToolError):
            page(index, "cursor", CLAUDE)

    def test_a_session_that_is_not_listed_answers(self, home, index):
        home.claude(5, line(type="ai-title", aiTitle="Only a title"))
        settled(index)
        summary = index.resolve("claude", session_id(5))
        assert (summary.title, summary.message_count) == ("Only a title", 0)
        assert page(index, "claude", session_id(5)).messages == ()
        assert session_id(5) not in {summary.id for summary in listed(index)}

    def test_a_resume_is_a_command_and_a_directory(self, index):
        resumes = {summary.tool: summary.resume for summary in listed(index)}
        assert resumes == {
            "claude": Resume("claude", ("--resume", CLAUDE), "/home/dev/shop"),
            "codex": Resume("codex", ("resume", CODEX), "/home/dev/port"),
            "pi": Resume("pi", ("--session", PI), "/home/dev/pi"),
        }

    def test_pages_and_messages_are_read(self, index):
        found = page(index, "codex", CODEX)
        assert [(m.role, m.text, m.model) for m in found.messages] == [
            ("user", "Port this to Rust", ""),
            ("assistant", "Done.", "gpt-5.5"),
        ]
        later = page(index, "codex", CODEX, offset=found.messages[1].offset)
        assert [message.model for message in later.messages] == ["gpt-5.5"]
        offset = found.messages[1].offset
        assert list(index.read_message("codex", CODEX, offset, 0, "", NEVER)) == ["Done."]
        read = index.read_transcript("codex", CODEX, None, "backward", 0, "", NEVER)
        assert sum(len(one.messages) for one in read) == 2

    @pytest.mark.parametrize("gone", ["unlink", "replaced by a FIFO", "replaced by a link"])
    def test_a_transcript_that_vanished_is_not_found(self, home, index, gone):
        path = home.codex(2)
        path.unlink()
        if gone == "replaced by a FIFO":
            os.mkfifo(path)
        elif gone == "replaced by a link":
            path.symlink_to("/etc/hostname")
        index._sweeper.poke = lambda: None
        with pytest.raises(TranscriptNotFoundError) as raised:
            page(index, "codex", CODEX)
        assert raised.value.metadata == {}
        with pytest.raises(TranscriptNotFoundError):
            list(index.read_transcript("codex", CODEX, None, "forward", 0, "", NEVER))
        with pytest.raises(TranscriptNotFoundError):
            list(index.read_message("codex", CODEX, 0, 0, "", NEVER))


class TestDuplicates:
    def test_an_active_codex_session_beats_its_archived_copy(self, home, index):
        name = f"rollout-2026-07-02T08-00-00-{CODEX}.jsonl"
        archived = home.codex(2).read_bytes().replace(b"Port this", b"Archived")
        home.write(f".codex/archived_sessions/{name}", archived)
        settled(index)
        assert index.resolve("codex", CODEX).title == "Port this to Rust"
        home.codex(2).unlink()
        settled(index)
        assert index.resolve("codex", CODEX).title == "Archived to Rust"

    def test_of_two_claude_copies_the_newest_wins(self, home, index):
        copy = home.claude(1, claude_prompt("copy"), folder="-home-dev-other")
        os.utime(copy, (0, 0))
        settled(index)
        assert index.resolve("claude", CLAUDE).title == "Why does it time out?"
        os.utime(copy, (2**32, 2**32))
        settled(index)
        assert index.resolve("claude", CLAUDE).title == "copy"


class TestGrowth:
    def test_an_append_updates_the_summary(self, home, index):
        path = home.path / f".claude/projects/-home-dev-shop/{CLAUDE}.jsonl"
        with path.open("ab") as file:
            file.write(claude_answer(99, second=9, request="req_1"))
        settled(index)
        summary = index.resolve("claude", CLAUDE)
        assert (summary.tokens.output, summary.message_count) == (99, 4)

    def test_a_pi_file_that_gets_its_header_late_is_no_session(self, home, index):
        (path,) = (home.path / ".pi").rglob("*.jsonl")
        lines = path.read_bytes()
        path.write_bytes(lines.split(b"\n", 1)[1] + lines)
        settled(index)
        assert index.find("pi", PI) is None


class TestUsage:
    def rows(self, index, *group_by):
        items = index.usage(UsageQuery(group_by=group_by), None, NEVER).items
        return [placed.item for placed in items]

    def test_sums_are_those_of_the_summaries(self, index):
        (total,) = self.rows(index)
        summaries = listed(index)
        tokens = sum(
            (summary.tokens + summary.subagent_tokens for summary in summaries), TokenUsage()
        )
        assert (total.tokens, total.cost_usd, total.session_count) == (tokens, 0.25, 3)
        sessions = self.rows(index, "session")
        assert [(row.keys, row.tokens) for row in sessions] == [
            ((f"{s.tool}:{s.id}",), s.tokens + s.subagent_tokens)
            for s in sorted(summaries, key=lambda s: (s.tool, s.id))
        ]

    def test_days_and_models_are_those_of_the_lines(self, index):
        assert [row.keys for row in self.rows(index, "day", "tool")] == [
            ("2026-01-02", "pi"),
            ("2026-03-01", "claude"),
            ("2026-07-02", "codex"),
        ]
        with_tokens = {row.keys[0] for row in self.rows(index, "model") if row.tokens.output}
        assert with_tokens == {"claude-opus-4-5", "claude-sonnet-4-5", "gpt-5.5"}


class TestIndexFile:
    def test_a_second_server_is_refused(self, index, open_index):
        with pytest.raises(AlreadyRunningError):
            open_index()

    def test_closing_frees_it_and_leaves_no_thread(self, index, open_index):
        thread = index._sweeper._thread
        assert thread in threading.enumerate()
        index.close()
        assert thread not in threading.enumerate()
        open_index()

    def test_entries_that_cannot_be_loaded_cost_a_rebuild(self, index, open_index, home, caplog):
        before = listed(index)
        index.close()
        (path,) = home.directory.glob("*.db")
        with apsw.Connection(str(path)) as db:
            db.execute("update transcripts set record = x'c1'")
        again = settled(open_index())
        assert listed(again) == before
        assert "made anew" in caplog.text

    def test_damage_found_by_a_call_is_mended(self, index, monkeypatch, caplog):
        expected = TestUsage().rows(index, "session")

        def failing(*_):
            monkeypatch.undo()
            raise apsw.CorruptError("malformed")

        monkeypatch.setattr(index_rows, "load_blocks", failing)
        with pytest.raises(DatabaseIoError):
            TestUsage().rows(index, "session")
        wait_until(lambda: "made anew" in caplog.text)
        wait_until(lambda: not index.building)
        # Whoever else meets the damage asks for the same once more.
        wait_until(lambda: TestUsage().rows(settled(index), "session") == expected)

    def test_pages_are_read_without_it(self, index, monkeypatch):
        def failing(*_):
            raise apsw.IOError("gone")

        monkeypatch.setattr(index_rows, "load_checkpoints", failing)
        found = page(index, "codex", CODEX)
        assert [message.model for message in found.messages] == ["", "gpt-5.5"]


class TestReadOnly:
    def tree(self, home):
        return {
            str(path): (path.read_bytes() if path.is_file() else None, path.lstat()[:8])
            for path in sorted(home.path.rglob("*"))
        }

    def test_nothing_below_the_home_is_changed(self, home, index):
        for path in home.path.rglob("*.jsonl"):
            os.utime(path, (0, 0))
        settled(index)
        before = self.tree(home)
        for summary in listed(index, include_subagents=True):
            page(index, summary.tool, summary.id)
            list(index.read_transcript(summary.tool, summary.id, None, "backward", 0, "", NEVER))
        TestUsage().rows(index, "day", "session")
        settled(index)
        index.close()
        after = self.tree(home)
        assert after == before

    def test_files_are_only_ever_opened_for_reading(self, home, open_index, monkeypatch):
        work = Work(monkeypatch, home.path)
        index = settled(open_index(ranked=False))
        page(index, "pi", PI)
        assert len(work.opened) == 5

    def test_a_warm_sweep_opens_nothing(self, home, index, monkeypatch):
        work = Work(monkeypatch, home.path)
        before = index.sweeps.finished
        settled(index)
        assert index.sweeps.finished > before
        assert (work.opened, work.read) == ([], 0)


def test_nothing_blocks_on_fifos_and_devices(home, open_index):
    os.mkfifo(home.path / f".claude/projects/-home-dev-shop/{session_id(7)}.jsonl")
    os.mkfifo(home.path / ".pi/agent/sessions/--home-dev-pi--/a_b.jsonl")
    (home.path / ".codex/archived_sessions").symlink_to("/dev")
    assert len(listed(settled(open_index()))) == 3


def test_the_tools_own_variables_move_their_roots(home, open_index, tmp_path):
    (home.path / ".claude").rename(tmp_path / "elsewhere")
    moved = {"CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere")}
    assert {one.tool for one in listed(settled(open_index(env=moved)))} == {"claude", "codex", "pi"}


def test_without_them_the_home_is_all_there_is(home, open_index, tmp_path):
    (home.path / ".claude").rename(tmp_path / "elsewhere")
    assert {one.tool for one in listed(settled(open_index()))} == {"codex", "pi"}


def test_its_directories_are_told(index, home):
    assert str(home.path / ".claude/projects") in index.directories
    assert str(home.path / ".codex/sessions") in index.directories
