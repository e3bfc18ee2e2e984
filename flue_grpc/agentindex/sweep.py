"""One sweep: find what changed, parse it, write it, drop what is gone.

The same steps run in the server for little work and in the worker for much.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flue_grpc.agentindex import index_rows
from flue_grpc.limits import SWEEP_COMMIT_BYTES, SWEEP_COMMIT_TRANSCRIPTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import apsw

    from flue_grpc.agentindex.discovery import Found
    from flue_grpc.agentindex.drafts import Draft
    from flue_grpc.agentindex.intake import Intake
    from flue_grpc.agentindex.records import Entry


@dataclass(slots=True)
class Batch:
    """Some parsed files on their way into the index: what to write, what to drop."""

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
    """Parse the newest files first; yield a batch whenever it is worth a transaction."""
    batch = Batch()
    for found in sorted(dirty, key=lambda found: -found.key.mtime_ns):
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
            batch = Batch()
    if batch.files:
        yield batch


def write_batch(db: apsw.Connection, batch: Batch) -> None:
    """Write a batch in one transaction, the one that spilled drafts have begun.

    Raises apsw.BusyError when another writer holds the file; the batch can be
    written again then, unless it had spilled.
    """
    if not db.in_transaction:
        db.execute("begin immediate")
    try:
        for draft in batch.drafts:
            index_rows.write_draft(db, draft)
        for entry in batch.dropped:
            index_rows.remove(db, entry.tid)
        db.execute("commit")
    except BaseException:
        if db.in_transaction:
            db.execute("rollback")
        raise
