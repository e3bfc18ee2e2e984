"""The sweep thread: one sweep at a time, never in the way of a call (behaviour B4)."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

import apsw

from flue_grpc.agentindex.discovery import discover, judge, real_roots
from flue_grpc.agentindex.local_sweep import LocalSweep
from flue_grpc.agentindex.worker_sweep import WorkerSweep
from flue_grpc.limits import SLOW_SWEEP_REST_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from flue_grpc.agentindex.adapters.base import Adapter
    from flue_grpc.agentindex.catalog import Catalog
    from flue_grpc.agentindex.discovery import Found, RealRoot
    from flue_grpc.agentindex.index_file import IndexFile
    from flue_grpc.agentindex.records import Entry
    from flue_grpc.agentindex.settings import IndexSettings
    from flue_grpc.agentindex.worker_messages import Progress

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sweeps:
    """How many sweeps of all roots were finished, and the last one, by the monotonic clock."""

    finished: int = 0
    last_seconds: float = 0.0
    last_end: float = 0.0

    def age_seconds(self) -> float:
        """Tell how long ago the last one ended."""
        return time.monotonic() - self.last_end


class Sweeper:
    """Sweeps when it is poked: all roots, or single files that are known to have changed."""

    def __init__(
        self,
        settings: IndexSettings,
        adapters: Sequence[Adapter[Any]],
        file: IndexFile,
        catalog: Catalog,
        on_swept: Callable[[], None],
    ) -> None:
        """Be ready; ``start`` begins. ``on_swept`` is called after each sweep."""
        self._settings = settings
        self._adapters = adapters
        self._roots = self._find_roots()
        self._catalog = catalog
        self._on_swept = on_swept
        self._stopping = Event()
        by_tool = {adapter.tool: adapter for adapter in adapters}
        self._local = LocalSweep(file, by_tool, catalog, self._stopping.is_set)
        self._worker = WorkerSweep(file, catalog, self._stopping)
        self._wake = Event()
        self._lock = Lock()
        self._paths: dict[str, None] = {}
        self._is_due = True
        self._is_sweeping = True
        self._is_damaged = False
        self._was_sound = True
        self._last_start = time.monotonic()
        self.sweeps = Sweeps()
        self._thread = Thread(target=self._run, name="sweep", daemon=True)

    @property
    def building(self) -> bool:
        """Whether a sweep runs or is about to; true until the first one is complete."""
        return self._is_due or self._is_sweeping or not self.sweeps.finished

    @property
    def directories(self) -> tuple[str, ...]:
        """The real paths of all roots, whether they exist or not."""
        return tuple(root.place.root for root in self._roots)

    @property
    def progress(self) -> Progress:
        """How far the worker has come; stands still when none runs."""
        return self._worker.progress

    def start(self) -> None:
        """Begin the first sweep."""
        self._wake.set()
        self._thread.start()

    def poke(self) -> None:
        """Ask for a sweep; within ``sweep_interval`` of the last one it is no news."""
        now = time.monotonic()
        with self._lock:
            if self._is_due or now - self._last_start < self._settings.sweep_interval:
                return
            self._is_due = True
        self._wake.set()

    def demand(self) -> None:
        """Ask for a sweep whenever the last one was."""
        with self._lock:
            self._is_due = True
        self._wake.set()

    def refresh(self, paths: Iterable[str]) -> None:
        """Look at these files at once; they are real paths that were seen to change."""
        with self._lock:
            self._paths.update(dict.fromkeys(paths))
        self._wake.set()

    def mend(self) -> None:
        """Ask for the index file to be made anew: it was found damaged."""
        with self._lock:
            self._is_damaged = True
            self._is_due = True
        self._wake.set()

    def stop(self) -> None:
        """End the sweep and the worker, and wait for them."""
        self._stopping.set()
        self._wake.set()
        self._worker.stop()
        if self._thread.is_alive():
            self._thread.join()
        self._local.close()

    def _run(self) -> None:
        while self._wake.wait() and not self._stopping.is_set():
            self._wake.clear()
            try:
                self._work()
            except OSError as error:
                # Not the whole of it: that may name a transcript.
                _log.warning("a sweep failed: %s", error.strerror or error)
            except Exception:  # noqa: BLE001 - the list stays, and the next poke tries again
                _log.exception("a sweep failed")

    def _work(self) -> None:
        if not self._local.is_in_place:
            _log.warning("the transcript index was removed or replaced")
            self.mend()
        with self._lock:
            paths, self._paths = self._paths, {}
            is_damaged, self._is_damaged = self._is_damaged, False
            is_due = self._is_due
            if is_due:
                # In this order, for ``building`` takes no lock.
                self._is_sweeping = True
                self._is_due = False
                self._last_start = time.monotonic()
        try:
            if is_damaged:
                self._local.renew()
            self._look_at(paths)
            if is_due:
                self._sweep()
                end = time.monotonic()
                self.sweeps = Sweeps(self.sweeps.finished + 1, end - self._last_start, end)
            self._on_swept()
        finally:
            if is_due:
                self._is_sweeping = False

    def _look_at(self, paths: Iterable[str]) -> None:
        dirty: list[Found] = []
        gone: list[Entry] = []
        for path in paths:
            found, entry = judge(self._roots, path), self._catalog.entry(path)
            if found is None:
                gone.extend(filter(None, [entry]))
            elif entry is None or entry.record.key != found.key:
                dirty.append(found)
        little = self._little(dirty)
        if len(little) < len(dirty):
            self.demand()
        if little or gone:
            self._go_on(is_sound=self._local.run(self._harmless(little), gone))

    def _go_on(self, *, is_sound: bool) -> None:
        """Fill an index file that was made anew at once; but not without end."""
        if not is_sound and self._was_sound:
            self.demand()
        self._was_sound = is_sound

    def _sweep(self) -> None:
        # Each time: a root may appear, or become a link to somewhere else.
        self._roots = self._find_roots()
        seen = discover(self._roots, self._catalog.known)
        gone = self._catalog.vanished(seen.paths)
        dirty = self._harmless(seen.dirty)
        if self._is_much(dirty):
            self._go_on(is_sound=self._sweep_much(dirty, gone))
        else:
            self._go_on(is_sound=self._local.run(dirty, gone))

    def _sweep_much(self, dirty: Sequence[Found], gone: Sequence[Entry]) -> bool:
        try:
            is_done = self._worker.run(self._roots, dirty, self._local.next_tid)
        except apsw.Error as error:
            _log.warning("the transcript index is damaged: %s", error)
            self._local.renew()
            return False
        if is_done:
            return self._local.catch_up()
        _log.warning("no sweep worker finished; sweeping slowly in the server")
        return self._local.run(self._harmless(dirty), gone, SLOW_SWEEP_REST_SECONDS)

    def _is_much(self, dirty: Iterable[Found]) -> bool:
        """Whether there is more to read than is read in the server."""
        return sum(map(self._unread, dirty)) > self._settings.worker_bytes

    def _little(self, dirty: Iterable[Found]) -> list[Found]:
        """Return those that can be read in the server, one after the other; none waits for much."""
        left = self._settings.worker_bytes
        little: list[Found] = []
        for found in sorted(dirty, key=self._unread):
            left -= self._unread(found)
            if left < 0:
                break
            little.append(found)
        return little

    def _unread(self, found: Found) -> int:
        entry = self._catalog.entry(found.path)
        if entry is None or entry.record.key.inode != found.key.inode:
            return found.key.size
        grown = found.key.size - entry.record.key.size
        # What looks like an append is read from where the parser stands.
        return found.key.size - entry.record.standing.offset if grown > 0 else found.key.size

    def _find_roots(self) -> tuple[RealRoot, ...]:
        return real_roots(self._adapters, self._settings.home, self._settings.env)

    def _harmless(self, dirty: Iterable[Found]) -> list[Found]:
        return [found for found in dirty if not self._worker.is_deadly(found)]
