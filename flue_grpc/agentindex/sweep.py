"""One sweep: find what changed, parse it, write it, drop what is gone.

The same steps run in the server for little work and in the worker for much.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import apsw

from flue_grpc.agentindex import index_rows
from flue_grpc.agentindex.faults import Faults
from flue_grpc.limits import SWEEP_COMMIT_BYTES, SWEEP_COMMIT_TRANSCRIPTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from flue_grpc.agentindex.discovery import Found
    from flue_grpc.agentindex.drafts import Draft
    from flue_grpc.agentindex.intake import Intake
    from flue_grpc.agentindex.records import Entry


@dataclass(slots=True)
class Batch:
    """Some parsed files on their way into the index: what to write, what to drop.

    ``faults`` is told of a draft that cannot be written.
    """

    faults: Faults = field(default_factory=Faults)
    drafts: list[Draft] = field(default_factory=list)
    dropped: list[Entry] = field(default_factory=list)
    files: int = 0
    bytes: int = 0

    @property
    def entries(self) -> list[Entry]:
        """The entries of the parsed files."""
        return [draft.entry for draft in self.drafts if draft.entry is not None]


def batches(
    dirty: Sequence[Found],
    intake: Intake,
    previous: Callable[[str], Entry | None],
    files: int = SWEEP_COMMIT_TRANSCRIPTS,
) -> Iterator[Batch]:
    """Parse the newest files first; yield a batch whenever it is worth a transaction.

    None waits for a file that alone is worth one: these come last, the smallest first.
    """
    batch = Batch(intake.faults)
    for found in sorted(dirty, key=_order):
        if batch.files and found.key.size >= SWEEP_COMMIT_BYTES:
            yield batch
            batch = Batch(intake.faults)
        before = previous(found.path)
        draft = intake.take(found, before)
        if draft is not None:
            batch.drafts.append(draft)
        elif before is not None:
            batch.dropped.append(before)
        batch.files += 1
        batch.bytes += found.key.size
        if batch.files >= files or batch.bytes >= SWEEP_COMMIT_BYTES:
            yield batch
            batch = Batch(intake.faults)
    if batch.files:
        yield batch


def _order(found: Found) -> tuple[int, int]:
    size = found.key.size
    return (size if size >= SWEEP_COMMIT_BYTES else 0, -found.key.mtime_ns)


def write_batch(db: apsw.Connection, batch: Batch) -> None:
    """Write a batch in one transaction, the one that spilled drafts have begun.

    A draft that holds what the file cannot is dropped from the batch and from the index.
    Raises apsw.BusyError when another writer holds the file; the batch can be
    written again then, unless it had spilled.
    """
    if not db.in_transaction:
        db.execute("begin immediate")
    try:
        for draft in tuple(batch.drafts):
            _write_draft(db, batch, draft)
        for entry in batch.dropped:
            index_rows.remove(db, entry.tid)
        db.execute("commit")
    except BaseException:
        if db.in_transaction:
            db.execute("rollback")
        raise


def _write_draft(db: apsw.Connection, batch: Batch, draft: Draft) -> None:
    db.execute("savepoint draft")
    try:
        index_rows.write_draft(db, draft)
    except apsw.Error:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it costs its file only
        db.execute("rollback to draft")
        _leave_out(db, batch, draft, error)
    db.execute("release draft")


def _leave_out(db: apsw.Connection, batch: Batch, draft: Draft, error: Exception) -> None:
    batch.drafts.remove(draft)
    # What was spilled, or kept of the file before, is no longer what it holds.
    for tid in filter(None, (draft.tid, draft.replaces)):
        index_rows.remove(db, tid)
    if draft.entry is not None:
        batch.dropped.append(draft.entry)
        batch.faults.tell(draft.entry.place.tool, error)
