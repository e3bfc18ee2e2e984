"""Lets the followers catch up behind the sweeps, out of the way of calls (techniques §2).

Little is done on a thread of low priority that rests as long as it works, much in a
worker process.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from contextlib import closing, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import apsw

from flue_grpc.agentindex.damage import is_damage
from flue_grpc.agentindex.worker_messages import WorkerOrder
from flue_grpc.agentindex.worker_process import WorkerProcess
from flue_grpc.errors import CancelledError
from flue_grpc.limits import BACKGROUND_SLICE_SECONDS, FOLLOW_WORKER_BYTES, WORKER_NICE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from flue_grpc.agentindex.adapters.base import Adapter
    from flue_grpc.agentindex.catalog import Catalog
    from flue_grpc.agentindex.followers import Follower
    from flue_grpc.agentindex.index_file import IndexFile

_log = logging.getLogger(__name__)


class Background:
    """The thread behind the sweep thread."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts that it ties together
        self,
        followers: Sequence[Follower],
        adapters: Mapping[str, Adapter[Any]],
        file: IndexFile,
        catalog: Catalog,
        worker_bytes: int,
        on_damage: Callable[[], None],
    ) -> None:
        """Be ready; ``start`` begins. ``on_damage`` is told when the file is damaged."""
        self._followers = followers
        self._adapters = adapters
        self._file = file
        self._catalog = catalog
        self._worker_bytes = min(worker_bytes, FOLLOW_WORKER_BYTES)
        self._on_damage = on_damage
        self._wake = Event()
        self._stopping = Event()
        self._is_idle = False
        self._process: WorkerProcess | None = None
        self._rested = 0.0
        self._thread = Thread(target=self._run, name="followers", daemon=True)

    @property
    def lags(self) -> bool:
        """Whether the followers are behind the summaries; true until they first are not."""
        return bool(self._followers) and (self._wake.is_set() or not self._is_idle)

    def start(self) -> None:
        """Begin; nothing happens before the first ``wake``."""
        if self._followers:
            self._thread.start()

    def wake(self) -> None:
        """Let the followers look for what is new; never blocks."""
        self._wake.set()

    def stop(self) -> None:
        """End the work, on the thread or outside, and wait for it."""
        self._stopping.set()
        self._wake.set()
        if self._process is not None:
            self._process.stop()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        _lower_priority()
        while self._wake.wait() and not self._stopping.is_set():
            # In this order, for ``lags`` takes no lock.
            self._is_idle = False
            self._wake.clear()
            try:
                self._is_idle = self._catch_up()
            except CancelledError:
                return
            except apsw.Error as error:
                _log.warning("the followers cannot use the transcript index: %s", error)
                if is_damage(error):
                    self._on_damage()
            except Exception:  # noqa: BLE001 - the next sweep wakes the followers again
                _log.exception("the followers of the transcript index failed")

    def _catch_up(self) -> bool:
        """Do what there is to do; return whether that was all."""
        entries = self._catalog.entries()
        with self._file.reader() as db:
            lags = [follower.lag(db, entries) for follower in self._followers]
        if sum(lags) > self._worker_bytes and self._fill_outside():
            self._wake.set()  # transcripts have grown meanwhile
            return False
        if any(lags):
            with closing(self._file.writer()) as db:
                for follower in self._followers:
                    follower.fill(db, entries, self._adapters, self._pace)
        return True

    def _fill_outside(self) -> bool:
        order = WorkerOrder(os.fsencode(self._file.path), (), 0, task="follow")
        try:
            self._process = WorkerProcess(order)
        except OSError as error:
            _log.warning("the worker cannot be started: %s", error)
            return False
        if self._stopping.is_set():
            self._process.stop()
        for _ in self._process.reports():
            pass
        is_done = self._process.wait()
        if self._stopping.is_set():
            raise CancelledError("the index is being closed")
        return is_done

    def _pace(self) -> None:
        if self._stopping.is_set():
            raise CancelledError("the index is being closed")
        now = time.monotonic()
        if now - self._rested > BACKGROUND_SLICE_SECONDS:
            time.sleep(BACKGROUND_SLICE_SECONDS)
            self._rested = time.monotonic()


def _lower_priority() -> None:
    """Let this thread alone give way, where threads have priorities of their own."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), WORKER_NICE)
