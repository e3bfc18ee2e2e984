"""The one thread that writes, and its group commit (behaviour A1, techniques §5).

Writes that wait together are committed together, each in its own savepoint; a
write that finds nobody else waiting is committed at once.
"""

from __future__ import annotations

import copy
import logging
import queue
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import apsw

from flue_grpc import limits
from flue_grpc.cancel import NEVER, Cancel
from flue_grpc.errors import CancelledError, DrainingError, FlueError, StoreStoppedError
from flue_grpc.store.batch import Batch
from flue_grpc.store.checkpoints import Checkpoints
from flue_grpc.store.sqlite_errors import is_failed_sync, translate

if TYPE_CHECKING:
    from collections.abc import Callable

    from flue_grpc.store.changes import Changes
    from flue_grpc.store.clock import Clock
    from flue_grpc.store.health import Health

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_LOG: Final = logging.getLogger(__name__)


class Operation(Protocol[T_co]):
    """One write: a batch of statements that takes effect whole or not at all.

    It may run more than once, when a write that shares its transaction takes
    the transaction down.
    """

    def __call__(self, batch: Batch, /) -> T_co:
        """Execute the statements and return what they made."""


class _Job(Generic[T]):
    """An operation that waits for its commit."""

    __slots__ = ("batch", "cancel", "error", "future", "operation", "result")

    def __init__(self, operation: Operation[T], cancel: Cancel) -> None:
        self.operation = operation
        self.cancel = cancel
        self.future: Future[T] = Future()
        self.batch: Batch | None = None
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self, batch: Batch) -> None:
        """Execute the operation and keep what came of it."""
        self.batch, self.result, self.error = batch, None, None
        try:
            self.result = self.operation(batch)
        except Exception as error:  # noqa: BLE001  (it belongs to the caller, not to this thread)
            self.error = error

    def complete(self) -> None:
        """Tell the caller."""
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Writer:
    """Runs operations on the writing connection; closes it at the end."""

    def __init__(
        self, connection: apsw.Connection, clock: Clock, changes: Changes, health: Health
    ) -> None:
        """Take the connection over and start the thread."""
        self._connection = connection
        self._clock = clock
        self._changes = changes
        self._health = health
        self._checkpoints = Checkpoints(connection)
        self._queue: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._is_closed = False
        self.commits = 0
        self.writes = 0
        self._thread = threading.Thread(target=self._work, name="store-writer", daemon=True)
        self._thread.start()

    def write(self, operation: Operation[T], cancel: Cancel = NEVER) -> T:
        """Run ``operation`` and return its result once it is committed.

        A call that is cancelled before the writer has taken it is dropped whole
        (contract rule 4). Raises what the operation raised, StoreStoppedError,
        or an error of the database; then nothing of it was written.
        """
        self._health.check_writable()
        job = _Job(operation, cancel)
        with self._gate:
            if self._is_closed:
                raise DrainingError("the Store is closed")
            self._queue.put(job)
        return job.future.result()

    @property
    def waiting(self) -> int:
        """How many operations the thread has not taken yet."""
        return self._queue.qsize()

    def close(self) -> None:
        """Finish what was taken, then close the connection; calling it again waits too."""
        with self._gate:
            if not self._is_closed:
                self._is_closed = True
                self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        is_open = True
        while is_open:
            group, is_open = self._next_group()
            try:
                self._commit(group)
            except Exception as error:  # noqa: BLE001  (a thread that ended would hang every write)
                _LOG.exception("a defect in the writer; its calls fail, it goes on")
                self._fail([job for job in group if not job.future.done()], error)
            if group or not self._queue.empty():
                self._tidy(self._checkpoints.run_if_large)
            else:
                self._tidy(self._checkpoints.run_when_idle)
        self._close_connection()

    def _next_group(self) -> tuple[list[_Job[Any]], bool]:
        """Wait for work; an empty group means that nothing came for a while."""
        group: list[_Job[Any]] = []
        patience = limits.CHECKPOINT_IDLE_SECONDS if self._checkpoints.is_due_when_idle else None
        try:
            job = self._queue.get(timeout=patience)
            while job is not None:
                if not _is_dropped(job):
                    group.append(job)
                if len(group) >= limits.GROUP_COMMIT_MAX:
                    break
                job = self._queue.get_nowait()
        except queue.Empty:
            return group, True
        return group, job is not None

    def _commit(self, group: list[_Job[Any]]) -> None:
        """Commit the group; a job that takes the transaction down is left out of the next try."""
        jobs = group
        while jobs:
            try:
                self._health.check_writable()
                culprit = self._transaction(jobs)
            except Exception as error:  # noqa: BLE001  (it belongs to the callers)
                self._fail(jobs, error)
                return
            if culprit is None:
                self._succeed(jobs)
                return
            self._fail([culprit], culprit.error or LookupError(culprit))
            jobs = [job for job in jobs if job is not culprit]

    def _transaction(self, jobs: list[_Job[Any]]) -> _Job[Any] | None:
        """Run and commit all; return the job, if any, that ended the transaction."""
        self._connection.execute("BEGIN IMMEDIATE")
        for job in jobs:
            if len(jobs) == 1:
                job.run(Batch(self._connection, self._clock))
            else:
                self._run_in_savepoint(job)
            if job.error is not None and is_failed_sync(job.error):
                raise job.error
            if job.error is not None and (len(jobs) == 1 or not self._connection.in_transaction):
                return job
        self._clock.save(self._connection)
        self._connection.execute("COMMIT")
        self.commits += 1
        return None

    def _run_in_savepoint(self, job: _Job[Any]) -> None:
        self._connection.execute("SAVEPOINT job")
        job.run(Batch(self._connection, self._clock))
        if job.error is not None and self._connection.in_transaction:
            self._connection.execute("ROLLBACK TO job")
        if self._connection.in_transaction:
            self._connection.execute("RELEASE job")

    def _succeed(self, jobs: list[_Job[Any]]) -> None:
        self._clock.saved()
        self._health.written()
        for job in jobs:
            if job.error is not None:
                job.error = self._learn(job.error)
            job.complete()
            self.writes += job.error is None
            if job.error is None and job.batch is not None:
                self._changes.announce(job.batch.touched, job.batch.deleted)

    def _fail(self, jobs: list[_Job[Any]], error: BaseException) -> None:
        """Roll back and tell the callers, each the reason of its own if it has one."""
        self._roll_back()
        reason = self._learn(error)
        for job in jobs:
            if not isinstance(job.error, FlueError):
                # A copy each: callers raise it in their own threads.
                job.error = copy.copy(reason)
                job.error.__cause__ = reason.__cause__
            job.complete()

    def _learn(self, error: BaseException) -> BaseException:
        """Keep what an error says about the database, and return the one to raise."""
        if is_failed_sync(error):
            _LOG.critical("a sync of the database failed; no more writes until a restart")
            self._health.stop()
            return StoreStoppedError("the Store takes no writes after a failed sync; restart it")
        if isinstance(error, apsw.Error):
            translated = translate(error)
            translated.__cause__ = error
            self._health.failed(translated)
            return translated
        return error

    def _roll_back(self) -> None:
        if not self._connection.in_transaction:
            return
        try:
            self._connection.execute("ROLLBACK")
        except apsw.Error:
            _LOG.exception("a rollback failed; no more writes until a restart")
            self._health.stop()

    def _tidy(self, checkpoint: Callable[[], None]) -> None:
        if self._health.state != "serving":
            return
        try:
            checkpoint()
        except apsw.Error as error:
            _LOG.warning("a checkpoint failed: %s", error)
            self._learn(error)

    def _close_connection(self) -> None:
        if self._health.state in ("stopped", "corrupt"):
            # The write-ahead log is the better copy now; recovery decides at the next start.
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self._connection.close()


def _is_dropped(job: _Job[Any]) -> bool:
    if not job.cancel.is_cancelled():
        return False
    job.error = CancelledError("the call was cancelled before its write began")
    try:
        job.cancel.check()
    except Exception as error:  # noqa: BLE001  (CancelledError or DeadlineError, for the caller)
        job.error = error
    job.complete()
    return True
