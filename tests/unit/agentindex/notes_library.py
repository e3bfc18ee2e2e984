"""Sessions of notes to search through."""

from __future__ import annotations

from msgspec.structs import replace

from flue_grpc import limits
from flue_grpc.agentindex.adapters.base import Context, Source
from flue_grpc.agentindex.catalog import Catalog
from flue_grpc.agentindex.escapes import UNKNOWN
from flue_grpc.agentindex.hit_filter import HitFilter
from flue_grpc.agentindex.records import Entry, FileKey, Place, Record, Standing, Trail
from flue_grpc.agentindex.substring import SubstringSearch, search
from flue_grpc.agentindex.substring_scan import Target
from flue_grpc.cancel import NEVER
from flue_grpc.listing import Placed, Stop
from tests.unit.agentindex.notes import Notes, summary


class Library:
    """Sessions of notes in a directory; each is older than the one written before it."""

    def __init__(self, directory):
        self.directory = directory
        self.catalog = Catalog()
        self.adapter = Notes()
        self.escapes = UNKNOWN
        self._tids = 0

    def path(self, name):
        return self.directory / f"{name}.jsonl"

    def write(self, name, *lines, **fields):
        self.path(name).write_bytes(b"".join(line + b"\n" for line in lines))
        return self.index(name, **fields)

    def index(self, name, **fields):
        """Take the file in, as a sweep does when it is new or has changed."""
        self._tids += 1
        path = self.path(name)
        facts = summary(name, size=path.stat().st_size, ended_at=10**9 - self._tids)
        status = path.stat()
        record = Record(
            Source("notes", name),
            FileKey(status.st_size, status.st_mtime_ns, status.st_ino, status.st_mode),
            Standing(0, b"", mirror=False, trail=Trail(), full_blocks=0),
            replace(facts, **fields),
        )
        place = Place("notes", "", str(self.directory))
        self.catalog.apply([Entry(self._tids, str(path), place, record, 0)])
        return path

    def target(self, session):
        entry = session.entry
        return Target(
            session.summary,
            entry.path,
            entry.place.root,
            self.adapter,
            Context(),
            self.escapes,
            key=entry.record.key,
        )

    def search(self, query, after=None, max_bytes=limits.SEARCH_BYTES, cancel=NEVER, **wanted):
        request = SubstringSearch(query, HitFilter(**wanted), max_bytes)
        clock = wanted.pop("clock", None)
        return search(self.catalog, self.target, request, after, cancel, clock or (lambda: 0.0))

    def hits(self, query, **options):
        return hits(self.search(query, **options))


def hits(steps):
    return [step.item for step in steps if isinstance(step, Placed)]


def found(those):
    return [(hit.id, hit.offset, hit.index) for hit in those]


def run(library, query, max_bytes, **wanted):
    """Follow the tokens to the end; return the hits of each call."""
    calls, after = [], None
    while True:
        assert len(calls) < 200
        steps = list(library.search(query, after=after, max_bytes=max_bytes, **wanted))
        calls.append(hits(steps))
        assert not any(isinstance(step, Stop) for step in steps[:-1])
        if not isinstance(steps[-1], Stop):
            return calls
        assert steps[-1].cursor != after
        after = steps[-1].cursor
