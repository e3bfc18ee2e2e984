"""The sweep worker: ``python -m flue_grpc.agentindex.sweep_worker``, started by the server.

It takes its order from standard input, commits what it parses, and reports each
commit on standard output. It ends when its standard input does, so it never outlives
the server, and what it has committed stays.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from flue_grpc.agentindex import index_rows
from flue_grpc.agentindex.adapters.base import Root
from flue_grpc.agentindex.adapters.registry import ADAPTERS
from flue_grpc.agentindex.changes import Stamps
from flue_grpc.agentindex.damage import is_damage
from flue_grpc.agentindex.discovery import Known, RealRoot, discover
from flue_grpc.agentindex.index_file import connect_writer
from flue_grpc.agentindex.intake import Intake
from flue_grpc.agentindex.records import Place
from flue_grpc.agentindex.sweep import Batch, batches, write_batch
from flue_grpc.agentindex.usage_blocks import clamp
from flue_grpc.agentindex.worker_messages import Progress, WorkerOrder, WorkerReport
from flue_grpc.limits import SWEEP_COMMIT_TRANSCRIPTS, WORKER_NICE

if TYPE_CHECKING:
    from flue_grpc.agentindex.adapters.base import Adapter
    from flue_grpc.agentindex.discovery import Discovery, Found
    from flue_grpc.agentindex.records import Entry
    from flue_grpc.agentindex.worker_messages import WorkerRoot

_ADAPTERS: dict[str, Adapter[Any]] = {adapter.tool: adapter for adapter in ADAPTERS}


def main() -> None:
    """Carry out the order that comes first on standard input."""
    order = msgspec.json.decode(_first_line(), type=WorkerOrder)
    Thread(target=_end_with_standard_input, daemon=True).start()
    os.nice(WORKER_NICE)
    try:
        with closing(connect_writer(Path(os.fsdecode(order.index)))) as db:
            if order.task == "sweep":
                _sweep(order, db)
            else:
                _follow(db)
    except apsw.Error as error:
        if not is_damage(error):
            raise
        _report(WorkerReport(is_damaged=True))
        sys.exit(f"the sweep worker finds the transcript index damaged: {error}")


def _follow(db: apsw.Connection) -> None:
    from flue_grpc.agentindex import followers  # noqa: PLC0415 - a sweep starts sooner without

    entries = list(index_rows.load_entries(db))
    for follower in followers.FOLLOWERS:
        follower.fill(db, entries, _ADAPTERS, _go_on)


def _sweep(order: WorkerOrder, db: apsw.Connection) -> None:
    try:
        _Sweep(order, db).run()
    except OSError as error:
        # Says that the file read last is not to blame.
        _report(WorkerReport())
        sys.exit(f"the sweep worker gives up: {error.strerror or error}")
    _report(WorkerReport(is_swept=True))


class _Sweep:
    """One sweep over all roots, as the order says."""

    def __init__(self, order: WorkerOrder, db: apsw.Connection) -> None:
        self._order = order
        self._db = db
        self._entries = {entry.path: entry for entry in index_rows.load_entries(db)}
        stamps = Stamps(max((entry.changed for entry in self._entries.values()), default=0))
        self._intake = Intake(db, _ADAPTERS, stamps, _go_on, order.first_tid)

    def run(self) -> None:
        known: Known = {}
        for entry in self._entries.values():
            known.setdefault(entry.place, {})[entry.path] = entry.record
        found = discover([_real_root(root) for root in self._order.roots], known)
        self._drop_vanished(found)
        self._parse(self._wanted(found))

    def _drop_vanished(self, found: Discovery) -> None:
        gone = [entry for path, entry in self._entries.items() if path not in found.paths]
        if gone:
            write_batch(self._db, Batch(dropped=gone))
            _report(WorkerReport(dropped=tuple(os.fsencode(entry.path) for entry in gone)))

    def _wanted(self, found: Discovery) -> list[Found]:
        avoid = {os.fsdecode(path) for path in self._order.avoid}
        return [file for file in found.dirty if file.path not in avoid]

    def _parse(self, dirty: list[Found]) -> None:
        # Sparse files may be larger together than a report can say.
        of_bytes = clamp(sum(found.key.size for found in dirty))
        files = size = 0
        _report(WorkerReport(progress=Progress(0, len(dirty), 0, of_bytes)))
        count = 1 if self._order.is_careful else SWEEP_COMMIT_TRANSCRIPTS
        for batch in batches(dirty, self._intake, self._previous, count):
            write_batch(self._db, batch)
            files, size = files + batch.files, clamp(size + batch.bytes)
            _report(
                WorkerReport(
                    stored=tuple(entry.tid for entry in batch.entries),
                    dropped=tuple(os.fsencode(entry.path) for entry in batch.dropped),
                    progress=Progress(files, len(dirty), size, of_bytes),
                )
            )

    def _previous(self, path: str) -> Entry | None:
        if self._order.is_careful:
            _report(WorkerReport(reading=os.fsencode(path)))
        return self._entries.get(path)


def _real_root(root: WorkerRoot) -> RealRoot:
    path, real = os.fsdecode(root.path), os.fsdecode(root.real)
    return RealRoot(_ADAPTERS[root.tool], Root(path, root.kind), Place(root.tool, root.kind, real))


def _go_on() -> None:
    """Never rest: the process as a whole gives way."""


def _report(report: WorkerReport) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    sys.stdout.buffer.flush()


def _first_line() -> bytes:
    # Not by way of sys.stdin: the thread that waits on it would hold its lock at the exit.
    line = b""
    while not line.endswith(b"\n") and (data := os.read(0, 65_536)):
        line += data
    return line


def _end_with_standard_input() -> None:
    while os.read(0, 4096):
        pass
    # Whatever the main thread is doing: SQLite undoes what was not committed.
    os._exit(0)


if __name__ == "__main__":
    main()
