"""Sweeping in a worker process, and what to do when it dies (techniques §3)."""

from __future__ import annotations

import logging
import os
from threading import Lock
from typing import TYPE_CHECKING

import apsw
import msgspec

from flue_grpc.agentindex import index_rows
from flue_grpc.agentindex.damage import is_damage
from flue_grpc.agentindex.worker_messages import Progress, WorkerOrder, WorkerReport, WorkerRoot
from flue_grpc.agentindex.worker_process import WorkerProcess
from flue_grpc.limits import WORKER_RETRY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from threading import Event

    from flue_grpc.agentindex.catalog import Catalog
    from flue_grpc.agentindex.discovery import Found, RealRoot
    from flue_grpc.agentindex.index_file import IndexFile
    from flue_grpc.agentindex.records import Entry, FileKey

_log = logging.getLogger(__name__)


class WorkerSweep:
    """Runs workers, shows what they commit, and remembers which files kill them."""

    def __init__(self, file: IndexFile, catalog: Catalog, stopping: Event) -> None:
        """Watch ``stopping``, which is set once, when the index is being closed."""
        self.progress = Progress()
        self._file = file
        self._catalog = catalog
        self._stopping = stopping
        self._deadly: dict[str, FileKey] = {}
        self._met_damage = False
        self._process: WorkerProcess | None = None
        self._lock = Lock()

    def is_deadly(self, found: Found) -> bool:
        """Whether a worker died over this file as it is now."""
        return self._deadly.get(found.path) == found.key

    def run(self, roots: Sequence[RealRoot], dirty: Sequence[Found], first_tid: int) -> bool:
        """Sweep ``roots`` outside; return False when no worker could finish.

        After a crash the next worker goes file by file, so that the one that kills it is
        known and left out. Ends early, with True, when the index is being closed. Raises
        apsw.Error when the index file is damaged.
        """
        keys = {found.path: found.key for found in dirty}
        order = WorkerOrder(
            os.fsencode(self._file.path), tuple(map(_worker_root, roots)), first_tid
        )
        for attempt, delay in enumerate((0.0, *WORKER_RETRY_SECONDS)):
            if self._stopping.wait(delay):
                return True
            if self._attempt(order, keys, is_careful=attempt > 0) and self._agree():
                return True
        return self._stopping.is_set()

    def stop(self) -> None:
        """End a running worker; ``stopping`` is set already."""
        with self._lock:
            process = self._process
        if process is not None:
            process.stop()

    def _agree(self) -> bool:
        """Show what the file holds: a worker may have died between a commit and its report."""
        shown = {entry.tid: entry for entry in self._catalog.entries()}
        try:
            with self._file.reader() as db:
                stamps = index_rows.load_stamps(db)
                missed = [tid for tid, stamp in stamps.items() if _stamp(shown, tid) != stamp]
                entries = index_rows.load_some(db, missed)
        except apsw.Error as error:
            if is_damage(error):
                raise
            _log.warning("what the sweep worker wrote cannot be read: %s", error)
            return False
        gone = [entry.path for tid, entry in shown.items() if tid not in stamps]
        self._catalog.apply(entries, gone)
        return True

    def _attempt(self, order: WorkerOrder, keys: dict[str, FileKey], *, is_careful: bool) -> bool:
        avoid = tuple(
            os.fsencode(path) for path, key in self._deadly.items() if keys.get(path, key) == key
        )
        order = msgspec.structs.replace(order, is_careful=is_careful, avoid=avoid)
        try:
            process = WorkerProcess(order)
        except OSError as error:
            _log.warning("the sweep worker cannot be started: %s", error)
            return False
        self._met_damage = False
        with self._lock:
            self._process = process
        if self._stopping.is_set():
            process.stop()
        reading, is_swept = self._follow(process)
        is_done = process.wait()
        if self._met_damage:
            raise apsw.CorruptError("the sweep worker finds the transcript index damaged")
        if not (is_done and is_swept) and reading in keys and not self._stopping.is_set():
            _log.error("a transcript that the sweep worker died over is left out until it changes")
            self._deadly[reading] = keys[reading]
        return is_swept

    def _follow(self, process: WorkerProcess) -> tuple[str, bool]:
        """Show what the worker commits; return the file it read last, and if it was done."""
        reading, is_swept = "", False
        try:
            for report in process.reports():
                self._show(report)
                reading = os.fsdecode(report.reading) if report.reading is not None else ""
                is_swept = is_swept or report.is_swept
        except (msgspec.MsgspecError, apsw.Error) as error:
            # The next one, or the server itself, meets a damaged file and mends it.
            _log.warning("what the sweep worker reports cannot be used: %s", error)
            is_swept = False
            process.stop()
        return reading, is_swept

    def _show(self, report: WorkerReport) -> None:
        self._met_damage = report.is_damaged
        if report.progress is not None:
            self.progress = report.progress
        if report.stored or report.dropped:
            with self._file.reader() as db:
                entries = index_rows.load_some(db, report.stored)
            self._catalog.apply(entries, [os.fsdecode(path) for path in report.dropped])


def _stamp(shown: dict[int, Entry], tid: int) -> int | None:
    entry = shown.get(tid)
    return None if entry is None else entry.changed


def _worker_root(root: RealRoot) -> WorkerRoot:
    place = root.place
    return WorkerRoot(place.tool, place.kind, os.fsencode(root.root.path), os.fsencode(place.root))
