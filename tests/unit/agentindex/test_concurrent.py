"""Many threads on one index while its home grows: answers only ever move forward."""

from __future__ import annotations

import random
import threading

from flue_grpc.agentindex.hit_filter import HitFilter
from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.ranked_search import RankedSearch
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.agentindex.snapshots import SnapshotFilter
from flue_grpc.agentindex.substring import SubstringSearch
from flue_grpc.agentindex.usage import UsageQuery
from flue_grpc.cancel import NEVER
from flue_grpc.listing import Placed
from tests.unit.agentindex.real_home import RealHome, claude_answer, claude_prompt, session_id
from tests.waiting import wait_until

SESSIONS, ROUNDS = 5, 40


class World:
    """A home that one thread appends to, and readers that watch it grow."""

    def __init__(self, home, index):
        self.home = home
        self.index = index
        self.errors = []
        self.is_over = threading.Event()
        self.looks = 0

    def append(self):
        dice = random.Random(1)
        for number in range(ROUNDS):
            path = (
                self.home.path
                / f".claude/projects/-home-dev-shop/{session_id(dice.randrange(SESSIONS))}.jsonl"
            )
            with path.open("ab") as file:
                file.write(claude_prompt(f"needle {number}") + claude_answer(request=f"q{number}"))
            self.index.refresh([str(path)])

    def reader(self, look):
        last = {}
        while not self.is_over.is_set():
            now = look(self.index)
            for key, value in last.items():
                assert now.get(key, -1) >= value, (key, value, now)
            last = now
            self.looks += 1

    def run(self, function, *arguments):
        try:
            function(*arguments)
        except BaseException as error:  # noqa: BLE001 - raised at the end
            self.errors.append(error)


def items(steps):
    return [step.item for step in steps if isinstance(step, Placed)]


def counts(index):
    found = items(index.snapshot(SnapshotFilter(), None, NEVER).items)
    assert [s.ended_at for s in found] == sorted((s.ended_at for s in found), reverse=True)
    return {summary.id: summary.message_count for summary in found}


def usage(index):
    (row,) = items(index.usage(UsageQuery(), None, NEVER).items)
    return {"output": row.tokens.output, "messages": row.message_count}


def pages(index):
    page = index.read_page("claude", session_id(0), 0, "forward", 200, "", NEVER)
    assert page.next <= page.file_size
    return {"messages": len(page.messages), "next": page.next}


def literal(index):
    hits = items(index.search(SubstringSearch("needle", HitFilter()), None, NEVER).items)
    assert len({(hit.id, hit.offset, hit.index) for hit in hits}) == len(hits)
    return {"hits": len(hits)}


def ranked(index):
    view = index.search_ranked(RankedSearch("needle", HitFilter(), 500), None, NEVER)
    hits = items(view.items)
    assert len({(hit.id, hit.offset, hit.index) for hit in hits}) == len(hits)
    return {"hits": len(hits)}


def test_answers_only_move_forward_while_transcripts_grow(tmp_path):
    home = RealHome(tmp_path.resolve())
    for number in range(SESSIONS):
        home.claude(number, claude_prompt(f"needle first {number}"), claude_answer())
    settings = IndexSettings(str(home.path), home.directory, sweep_interval=0)
    with AgentIndex.open(settings) as index:
        _settle(index)
        world = World(home, index)
        looks = (counts, counts, usage, pages, literal, ranked)
        threads = [threading.Thread(target=world.run, args=(world.reader, look)) for look in looks]
        writer = threading.Thread(target=world.run, args=(world.append,))
        for thread in (*threads, writer):
            thread.start()
        writer.join()
        world.is_over.set()
        for thread in threads:
            thread.join()
        # Only now: readers ask for sweeps without a pause, so one would always be under way.
        index.refresh_all()
        _settle(index)
        assert world.errors == []
        assert world.looks > len(looks)
        assert sum(counts(index).values()) == 2 * (SESSIONS + ROUNDS)
        assert literal(index) == ranked(index) == {"hits": SESSIONS + ROUNDS}


def _settle(index):
    wait_until(lambda: not (index.building or index.lags))
