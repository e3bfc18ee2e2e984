"""A tool whose messages are what a test says, and a desk that indexes and searches them.

A line is whole objects {"text", "role", "kind", "t": seconds}; {"mirror": true} makes the
parser take the "echo" objects for the conversation instead of the others.
"""

from __future__ import annotations

import json

import msgspec

from flue_grpc.agentindex import ranked_fill, ranked_index
from flue_grpc.agentindex.adapters.base import Context
from flue_grpc.agentindex.catalog import Catalog
from flue_grpc.agentindex.discovery import discover
from flue_grpc.agentindex.hit_filter import HitFilter
from flue_grpc.agentindex.index_file import open_index_file
from flue_grpc.agentindex.json_repair import whole_objects
from flue_grpc.agentindex.local_sweep import LocalSweep
from flue_grpc.agentindex.ranked_index import MESSAGE_BITS
from flue_grpc.agentindex.ranked_search import RankedSearch, RankedSearches
from flue_grpc.agentindex.substring_scan import Target
from flue_grpc.agentindex.values import Message
from flue_grpc.cancel import NEVER
from flue_grpc.errors import CancelledError
from flue_grpc.listing import Placed, Stop
from tests.unit.agentindex.logs import SECOND, Home, Logs, State, log


class TalkState(State):
    mirror: bool = False


class Talks(Logs):
    """The logs, with messages."""

    state_type = TalkState

    def start(self, source):
        return TalkState()

    def context(self, state):
        return Context(state.model, state.mirror)

    def _take(self, state, data, ledger):
        state.mirror = state.mirror or bool(json.loads(data).get("mirror"))
        return super()._take(state, data, ledger)

    def messages(self, line, offset, context):
        said = [json.loads(data) for data in whole_objects(line)]
        said = [one for one in said if bool(one.get("echo")) == context.mirror]
        return [
            Message(
                one.get("role", "user"),
                one.get("kind", "text"),
                one.get("text", ""),
                offset,
                index,
                one["t"] * SECOND if "t" in one else None,
            )
            for index, one in enumerate(said)
        ], context


def talk(text="", **said):
    return log(text=text, **said)


class Desk:
    """A home of talks, its index file, and its RANKED index."""

    def __init__(self, base):
        self.home = Home(base)
        self.adapters = {"logs": Talks()}
        parts = (ranked_index.RANKED_TABLES,)
        self.file = open_index_file(self.home.directory, str(self.home.path), parts)
        self.catalog = Catalog()
        self.local = LocalSweep(self.file, self.adapters, self.catalog, lambda: False)
        self.searches = RankedSearches(self.file, self.catalog, self.target)

    def write(self, name, *lines, tail=b""):
        self.home.write(f"logs/{name}.jsonl", *lines, tail=tail)

    def append(self, name, *lines, tail=b""):
        self.home.append(f"logs/{name}.jsonl", *lines, tail=tail)

    def remove(self, name):
        (self.home.path / f"logs/{name}.jsonl").unlink()

    def sweep(self):
        seen = discover(self.home.roots, self.catalog.known)
        self.local.run(seen.dirty, self.catalog.vanished(seen.paths))
        return self

    def work(self):
        with self.file.reader() as db:
            return ranked_fill.remaining(self.catalog.entries(), ranked_index.load_parts(db))

    def fill(self, pace=lambda: None):
        db = self.file.writer()
        try:
            ranked_fill.fill(db, self.work(), self.adapters, pace)
        finally:
            db.close()
        return self

    def settle(self):
        return self.sweep().fill()

    def target(self, session):
        entry = session.entry
        return Target(
            session.summary,
            entry.path,
            entry.place.root,
            self.adapters["logs"],
            Context(mirror=entry.record.standing.mirror),
        )

    def steps(self, query, after=None, limit=50, max_bytes=2**40, cancel=NEVER, **wanted):
        request = RankedSearch(query, HitFilter(**wanted), limit, max_bytes)
        return self.searches.search(request, after, cancel)

    def hits(self, query, **options):
        return [step.item for step in self.steps(query, **options) if isinstance(step, Placed)]

    def found(self, query, **options):
        return [(hit.id, hit.offset, hit.index) for hit in self.hits(query, **options)]

    def texts(self, query, **options):
        return [hit.snippet for hit in self.hits(query, **options)]

    def rows(self, query="select * from ranked_messages order by id"):
        with self.file.reader() as db:
            return db.execute(query).fetchall()

    def part(self, name):
        """Return the last part of a transcript, None when nothing is indexed of it."""
        entry = self.catalog.entry(str(self.home.path / f"logs/{name}.jsonl"))
        with self.file.reader() as db:
            return ranked_index.load_last_part(db, entry.tid)

    def is_sound(self):
        """Each row has its message, and the index agrees with itself."""
        ids = [row[0] for row in self.rows("select id from ranked_messages order by id")]
        indexed = [row[0] for row in self.rows("select id from ranked_index_docsize order by id")]
        db = self.file.writer()
        db.execute("insert into ranked_index(ranked_index, rank) values('integrity-check', 0)")
        parts = [part for some in ranked_index.load_parts(db).values() for part in some]
        expected = [
            part.ordinal << MESSAGE_BITS | number
            for part in sorted(parts, key=lambda part: part.ordinal)
            for number in range(part.messages + part.tail)
        ]
        db.close()
        return ids == indexed == expected

    def close(self):
        self.local.close()
        self.file.close()


def pages(desk, query, size, **options):
    """Follow the places to the end, ``size`` hits at a time; return the hits."""
    hits, after = [], None
    while True:
        assert len(hits) < 10_000
        steps = desk.steps(query, after=after, limit=size, **options)
        given = 0
        for step in steps:
            if isinstance(step, Stop):
                after = step.cursor
                break
            if not isinstance(step, Placed):
                return hits
            if given == size:
                break
            hits.append(step.item)
            after, given = step.cursor, given + 1
        steps.close()


def plain(hit):
    """A hit without what depends on the number of messages."""
    return msgspec.structs.replace(hit, score=0.0)


class Stopper:
    """Says after some questions that nobody waits any more."""

    def __init__(self, patience, error=CancelledError):
        self.left = patience
        self.error = error

    def is_cancelled(self):
        self.left -= 1
        return self.left < 0

    def check(self):
        if self.is_cancelled():
            raise self.error("over")
