"""Sweeping in this process: for little work, and where no worker can be had."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Literal

import apsw

from flue_grpc.agentindex.changes import Stamps
from flue_grpc.agentindex.damage import is_damage
from flue_grpc.agentindex.intake import Intake
from flue_grpc.agentindex.sweep import Batch, batches, write_batch
from flue_grpc.errors import CancelledError
from flue_grpc.limits import BUSY_TIMEOUT_MS, QUICK_WRITE_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from flue_grpc.agentindex.adapters.base import Adapter
    from flue_grpc.agentindex.catalog import Catalog
    from flue_grpc.agentindex.discovery import Found
    from flue_grpc.agentindex.index_file import IndexFile
    from flue_grpc.agentindex.records import Entry

_log = logging.getLogger(__name__)


class LocalSweep:
    """Parses what is dirty, shows it, writes it; only the sweep thread calls it."""

    def __init__(
        self,
        file: IndexFile,
        adapters: Mapping[str, Adapter[Any]],
        catalog: Catalog,
        is_stopping: Callable[[], bool],
    ) -> None:
        """Open a writer; ``is_stopping`` ends the work at the next good moment."""
        self._file = file
        self._adapters = adapters
        self._catalog = catalog
        self._is_stopping = is_stopping
        self._rest = 0.0
        self._is_lost = False
        self._intake = self._open(1)

    @property
    def next_tid(self) -> int:
        """The lowest tid that was not given out yet."""
        return self._intake.next_tid

    @property
    def is_in_place(self) -> bool:
        """Whether the index file is still the one that was opened."""
        return self._file.is_in_place

    def catch_up(self) -> bool:
        """Learn what another process has written meanwhile; return what ``run`` does."""
        return self.run((), ())

    def run(self, dirty: Sequence[Found], gone: Sequence[Entry], rest: float = 0.0) -> bool:
        """Take in all of ``dirty``, drop what is ``gone``.

        Return False when the index file had to be made anew instead: all is dirty now.
        ``rest`` is how many seconds to sleep after some lines, for calls to go on. Raises
        OSError for a shortage of ours; what was stored before stays.
        """
        self._rest = rest
        if self._is_lost:
            self.renew()
            return False
        before = self._intake
        try:
            self._intake.catch_up()
            if gone:
                self._store(Batch(dropped=list(gone)))
            for batch in batches(dirty, before, self._catalog.entry):
                self._store(batch)
                if self._intake is not before:
                    break
        except CancelledError:
            self._roll_back()
        except apsw.Error as error:
            self._roll_back()
            self._recover(error)
        except BaseException:
            self._roll_back()
            raise
        return self._intake is before

    def close(self) -> None:
        """Close the writer."""
        self._intake.db.close(force=True)

    def _open(self, first_tid: int) -> Intake:
        stamps = Stamps(self._catalog.view().moment)
        return Intake(self._file.writer(), self._adapters, stamps, self._pace, first_tid)

    def _pace(self) -> None:
        if self._is_stopping():
            raise CancelledError("the index is being closed")
        if self._rest:
            time.sleep(self._rest)

    def _store(self, batch: Batch) -> None:
        """Write and show a batch; whoever holds the file delays only the writing."""
        outcome = self._write(batch, QUICK_WRITE_MS)
        self._catalog.apply(batch.entries, [entry.path for entry in batch.dropped])
        if outcome == "busy":
            outcome = self._write(batch, BUSY_TIMEOUT_MS)
        if outcome != "written":
            self._catalog.distrust(entry.path for entry in batch.entries)

    def _write(self, batch: Batch, patience_ms: int) -> Literal["written", "busy", "failed"]:
        db = self._intake.db
        db.set_busy_timeout(patience_ms)
        try:
            write_batch(db, batch)
        except apsw.BusyError:
            return "busy"
        except apsw.Error as error:
            self._recover(error)
            return "failed"
        return "written"

    def _recover(self, error: apsw.Error) -> None:
        """Go on after a failed write: what it held is read again by the next sweep."""
        if not is_damage(error):
            _log.warning("the transcript index cannot be written: %s", error)
            return
        _log.warning("the transcript index is damaged: %s", error)
        self.renew()

    def renew(self) -> None:
        """Make the index file anew; every transcript is dirty then. Raises OSError."""
        _log.warning("the transcript index is made anew")
        self._is_lost = True  # until there is another one
        self._intake.db.close(force=True)
        self._file.rebuild()
        self._intake = self._open(self._intake.next_tid)
        self._catalog.distrust()
        self._is_lost = False

    def _roll_back(self) -> None:
        if not self._is_lost and self._intake.db.in_transaction:
            self._intake.db.execute("rollback")
