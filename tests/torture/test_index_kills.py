"""Kill the index and its worker at random moments, while the home changes (behaviour B4).

Every second kill falls in the middle of a transaction, of the sweep or of the RANKED build.

Whatever was under way, summaries or RANKED rows, the next life ends with what an index
says that has just read the whole home for the first time.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import apsw
import pytest

from flue_grpc.agentindex.hit_filter import HitFilter
from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.index_file import index_path
from flue_grpc.agentindex.ranked_search import RankedSearch
from flue_grpc.agentindex.snapshots import SnapshotFilter
from flue_grpc.agentindex.substring import SubstringSearch
from flue_grpc.agentindex.usage import UsageQuery
from flue_grpc.cancel import NEVER
from flue_grpc.listing import Placed
from tests.torture.changing_home import ChangingHome
from tests.torture.doom import Doom
from tests.torture.indexer import NO_WORKER, WORKER_BYTES, settings
from tests.torture.victim import until
from tests.waiting import wait_until

QUERIES = ("alpha", "timeout token", '"beta gamma"', "lib*", "版本", "rust -sqlite", "second")
GROUPINGS = ((), ("session",), ("day", "model"), ("tool", "cwd"))
CHECK_EVERY = 20
# The kind of transaction that a kill cuts off, and which process it falls on.
ON_THREADS = (("sweep", "index"), ("ranked", "index"))
MOMENTS = (("sweep", "worker"), ("ranked", "worker"), *ON_THREADS)


@pytest.mark.parametrize("worker_bytes", [WORKER_BYTES, NO_WORKER], ids=["worker", "thread"])
def test_a_killed_index_ends_like_a_fresh_one(
    directory, nursery, *, kills, seed, worker_bytes, record_property
):
    dice = random.Random(seed)
    home = ChangingHome(directory, seed)
    home.fill(60)
    moments = MOMENTS if worker_bytes < NO_WORKER else ON_THREADS
    turns = max(2 * len(moments), kills // 4)
    fallen = Counter()
    for turn in range(turns):
        for _ in range(dice.randint(1, 12)):
            home.change()
        if turn % 2:
            moment = moments[turn // 2 % len(moments)]
            _doom(nursery, home, worker_bytes, moment, dice)
            fallen[moment] += 1
        else:
            life = _index(nursery, home, worker_bytes, "killed")
            until(time.monotonic() + dice.expovariate(1 / 0.06))
            if dice.random() < 0.3:
                fallen["other work", "worker"] += _kill_worker(life.pid)
            assert life.kill() == -9
        if turn % CHECK_EVERY == 0:
            _compare(nursery, home, worker_bytes, directory / f"fresh-{turn}")
    _compare(nursery, home, worker_bytes, directory / "fresh")
    assert all(fallen[moment] >= turns // 2 // len(moments) for moment in moments)
    record_property("kills", turns)
    for (kind, who), count in fallen.items():
        record_property(f"{who} killed in {kind}", count)


def _doom(nursery, home, worker_bytes, moment, dice):
    """Kill in the middle of a transaction, and after a worker the index as well."""
    kind, victim = moment
    home.fill(3)
    # Their marks lie where the home does, outside of what is read.
    mark = home.path.parent / "doom"
    mark.unlink(missing_ok=True)
    doom = Doom(kind, victim, dice.randint(1, 3), str(mark))
    outside = 0 if worker_bytes < NO_WORKER else worker_bytes
    life = nursery.run(
        "tests.torture.indexer:doomed",
        str(home.path),
        str(home.directory),
        str(outside),
        json.dumps(asdict(doom)),
    )
    wait_until(mark.exists)
    if victim == "worker":
        until(time.monotonic() + dice.expovariate(1 / 0.06))
        life.kill()
    assert life.wait() == -9
    assert mark.read_text().startswith(f"{kind} {victim}\n")


def _index(nursery, home, worker_bytes, end):
    life = nursery.run(
        "tests.torture.indexer:main", str(home.path), str(home.directory), str(worker_bytes), end
    )
    assert life.line() == "open"
    return life


def _kill_worker(pid):
    """Kill a worker of process ``pid``, if it has one; return how many were killed."""
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += (task / "children").read_text().split()
        for child in set(children):
            os.kill(int(child), signal.SIGKILL)
            return 1
    return 0


def _compare(nursery, home, worker_bytes, fresh):
    """Let one more life finish, and hold what it kept against a first reading."""
    assert _index(nursery, home, worker_bytes, "done").wait() == 0
    kept = _answers(home.path, home.directory)
    assert kept == _answers(home.path, fresh)
    assert _is_sound(index_path(home.directory, str(home.path)))
    assert kept["sessions"]
    assert kept["ranked", "alpha"]


def _answers(home, directory):
    """Everything that an index says of a home."""
    with AgentIndex.open(settings(home, directory, NO_WORKER)) as index:
        wait_until(lambda: not (index.building or index.lags))
        everything = SnapshotFilter(include_subagents=True)
        answers = {"sessions": _items(index.snapshot(everything, None, NEVER).items)}
        for group_by in GROUPINGS:
            view = index.usage(UsageQuery(group_by=group_by), None, NEVER)
            answers["usage", group_by] = _items(view.items)
        for query in QUERIES:
            wanted = HitFilter(include_subagents=True)
            ranked = index.search_ranked(RankedSearch(query, wanted, 1000), None, NEVER)
            hits = sorted(map(_facts, _items(ranked.items)))
            answers["ranked", query] = hits
        literal = SubstringSearch("timeout", HitFilter(include_subagents=True))
        answers["literal"] = _items(index.search(literal, None, NEVER).items)
    return answers


def _items(steps):
    return [step.item for step in steps if isinstance(step, Placed)]


def _facts(hit):
    return (hit.tool, hit.id, hit.offset, hit.index, hit.snippet, round(hit.score, 6))


def _is_sound(path):
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        checked = connection.execute("pragma integrity_check").fetchall()
        connection.execute("insert into ranked_index(ranked_index) values('integrity-check')")
        return checked == [("ok",)]
    finally:
        connection.close()
