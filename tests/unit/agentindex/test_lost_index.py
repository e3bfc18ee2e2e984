"""An index file that somebody removes or spoils while it is in use is made anew (behaviour B4)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from flue_grpc.agentindex.hit_filter import HitFilter
from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.index_file import index_path
from flue_grpc.agentindex.ranked_search import RankedSearch
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.agentindex.snapshots import SnapshotFilter
from flue_grpc.agentindex.usage import UsageQuery
from flue_grpc.cancel import NEVER
from flue_grpc.listing import Placed
from tests.unit.agentindex.real_home import RealHome, claude_answer, claude_prompt
from tests.waiting import wait_until

PATIENCE = 30.0


def remove(path):
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def remove_directory(path):
    shutil.rmtree(path.parent)


def empty(path):
    os.truncate(path, 0)


def overwrite(path):
    with path.open("r+b") as file:
        file.write(b"garbage" * (path.stat().st_size // 7))


def replace(path):
    other = path.with_suffix(".other")
    other.write_bytes(b"")
    other.replace(path)


def spoil_the_log(path):
    Path(f"{path}-wal").write_bytes(b"x" * 100_000)


HARMS = [remove, remove_directory, empty, overwrite, replace, spoil_the_log]


@pytest.fixture
def home(tmp_path):
    home = RealHome(tmp_path.resolve())
    for number in range(3):
        home.claude(number, claude_prompt("a needle"), claude_answer())
    return home


def answers(index):
    ranked = index.search_ranked(RankedSearch("needle", HitFilter(), 50), None, NEVER)
    usage = index.usage(UsageQuery(), None, NEVER)
    return (
        len(items(index.snapshot(SnapshotFilter(), None, NEVER).items)),
        len(items(ranked.items)),
        items(usage.items)[0].message_count,
    )


def items(steps):
    return [step.item for step in steps if isinstance(step, Placed)]


def settle(index):
    finished = index.sweeps.finished
    index.refresh_all()
    wait_until(lambda: index.sweeps.finished > finished)
    wait_until(lambda: not (index.building or index.lags))


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_an_index_file_that_is_lost_in_use_is_made_anew(home, harm):
    with AgentIndex.open(
        IndexSettings(str(home.path), home.directory, sweep_interval=1e9)
    ) as index:
        settle(index)
        assert answers(index) == (3, 3, 6)
        path = index_path(home.directory, str(home.path))
        harm(path)
        home.claude(9, claude_prompt("another needle"), claude_answer())
        wait_until(lambda: settle(index) or answers(index) == (4, 4, 8))
    with AgentIndex.open(
        IndexSettings(str(home.path), home.directory, sweep_interval=1e9)
    ) as index:
        assert len(items(index.snapshot(SnapshotFilter(), None, NEVER).items)) == 4
