"""The index over a home of real transcripts (behaviour B2 to B5)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.agentindex.snapshots import SnapshotFilter
from flue_grpc.agentindex.usage import UsageQuery
from flue_grpc.agentindex.values import TokenUsage
from flue_grpc.cancel import NEVER
from tests.unit.agentindex.real_home import claude_answer, claude_prompt
from tests.waiting import wait_until

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
MAKE_HOME = CORPUS / "make_home"
pytestmark = pytest.mark.skipif(not MAKE_HOME.exists(), reason="no corpus beside the repository")

EVERYTHING = SnapshotFilter(include_subagents=True)
GROUPS = [(), ("day",), ("model",), ("tool", "cwd"), ("session",), ("day", "model", "session")]


def transcripts(home):
    return sorted(home.rglob("*.jsonl"))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "home"
    subprocess.run([sys.executable, MAKE_HOME, path], check=True, stdout=subprocess.DEVNULL)
    # The corpus has subagents without the sessions that started them: add one of these.
    folder = min(path.rglob("subagents")).parent
    folder.with_suffix(".jsonl").write_bytes(claude_prompt() + claude_answer())
    return path.resolve()


def swept(home, directory, **settings):
    index = AgentIndex.open(IndexSettings(str(home), directory, **settings))
    wait_until(lambda: not index.building)
    return index


def listed(index, wanted=EVERYTHING):
    return [placed.item for placed in index.snapshot(wanted, None, NEVER).items]


@pytest.fixture(scope="module")
def index(home, tmp_path_factory):
    index = swept(home, tmp_path_factory.mktemp("index"))
    yield index
    index.close()


def test_every_transcript_is_listed_under_its_own_name(home, index):
    summaries = listed(index)
    stems = {path.stem for path in transcripts(home)}
    for summary in summaries:
        if summary.tool == "claude":
            assert summary.id.removeprefix(f"{summary.parent_id}.") in stems
        else:
            assert any(stem.endswith(summary.id) for stem in stems)
        assert summary.message_count > 0
    ends = [summary.ended_at for summary in summaries]
    assert ends == sorted(ends, key=lambda end: (end is None, -(end or 0)))
    # Four files hold no message, and one of Pi's has no header (formats §4.1, §8.6).
    assert len(stems) == len(transcripts(home)) == 57
    assert (len(summaries), index.transcripts) == (57 - 5, 57 - 1)


def test_a_worker_finds_the_same(home, index, tmp_path):
    outside = swept(home, tmp_path, worker_bytes=0)
    assert listed(outside) == listed(index)
    assert outside.progress.files == 57
    outside.close()


def test_pages_of_every_transcript_hold_what_its_summary_counts(index):
    for summary in listed(index):
        read = index.read_transcript(summary.tool, summary.id, None, "forward", 0, "", NEVER)
        messages = [message for page in read for message in page.messages]
        said = [message for message in messages if message.role != "system"]
        assert len(said) == summary.message_count
        calls = [message for message in messages if message.kind == "tool_call"]
        assert len(calls) == summary.tool_call_count


@pytest.mark.parametrize("group_by", GROUPS, ids="-".join)
def test_usage_sums_up_to_the_summaries(index, group_by):
    items = index.usage(UsageQuery(group_by=group_by), None, NEVER).items
    rows = [placed.item for placed in items]
    summaries = listed(index)
    assert sum((row.tokens for row in rows), TokenUsage()) == sum(
        (summary.tokens for summary in summaries), TokenUsage()
    )
    assert sum(row.message_count for row in rows) == sum(s.message_count for s in summaries)
    assert sum(row.cost_usd or 0 for row in rows) == pytest.approx(
        sum(summary.cost_usd or 0 for summary in summaries)
    )


def test_sessions_hold_what_their_subagents_used(index):
    items = index.usage(UsageQuery(group_by=("session",)), None, NEVER).items
    rows = {placed.item.keys[0]: placed.item for placed in items}
    mains = listed(index, SnapshotFilter())
    assert any(summary.subagent_tokens != TokenUsage() for summary in mains)
    for summary in mains:
        row = rows.pop(f"{summary.tool}:{summary.id}")
        assert row.tokens == summary.tokens + summary.subagent_tokens
    orphans = [
        s for s in listed(index) if s.is_subagent and index.find(s.tool, s.parent_id) is None
    ]
    assert set(rows) == {f"{summary.tool}:{summary.id}" for summary in orphans}


def test_nothing_below_the_home_is_changed(home, tmp_path):
    def tree():
        return {path: path.lstat()[:8] for path in home.rglob("*")}

    bytes_before = {path: path.read_bytes() for path in transcripts(home)}
    for path in transcripts(home):
        os.utime(path, (0, path.stat().st_mtime))
    before = tree()
    index = swept(home, tmp_path, worker_bytes=0)
    for summary in listed(index):
        index.read_page(summary.tool, summary.id, None, "backward", 200, "", NEVER)
    index.close()
    assert tree() == before
    assert {path: path.read_bytes() for path in transcripts(home)} == bytes_before


@pytest.mark.parametrize("parts", [2, 7])
def test_a_home_that_grows_in_steps_ends_as_one_read_at_once(home, index, tmp_path, parts):
    """Every file is cut anywhere, in the middle of lines too."""
    grown = tmp_path / "home"
    sizes = {path: path.stat().st_size for path in transcripts(home)}
    with AgentIndex.open(
        IndexSettings(str(grown), tmp_path / "index", sweep_interval=0.0)
    ) as growing:
        for part in range(1, parts + 1):
            for path, size in sizes.items():
                copy = grown / path.relative_to(home)
                copy.parent.mkdir(parents=True, exist_ok=True)
                with path.open("rb") as whole, copy.open("ab") as file:
                    start, end = size * (part - 1) // parts, size * part // parts
                    whole.seek(start)
                    file.write(whole.read(end - start))
            growing.poke()
            wait_until(lambda: not growing.building)
        found = {(s.tool, s.id): bare(s) for s in listed(growing)}
        usage = growing.usage(UsageQuery(group_by=("day", "model", "session")), None, NEVER)
        rows = [placed.item for placed in usage.items]
    assert found == {(s.tool, s.id): bare(s) for s in listed(index)}
    whole = index.usage(UsageQuery(group_by=("day", "model", "session")), None, NEVER)
    assert rows == [placed.item for placed in whole.items]


def bare(summary):
    """Leave out what another file of the same bytes differs in."""
    return msgspec.structs.replace(summary, updated_at=0, revision="")


def test_summaries_are_valid_utf8_without_nul(index):
    for summary in listed(index):
        text = json.dumps(msgspec.to_builtins(summary), ensure_ascii=False)
        assert "\0" not in text
        text.encode()
