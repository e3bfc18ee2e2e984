"""Taking one found file in: parsed on where that is sound, else from zero (behaviour B4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from flue_grpc.agentindex import index_rows, usage_blocks
from flue_grpc.agentindex.damage import SPOILT
from flue_grpc.agentindex.drafts import Draft
from flue_grpc.agentindex.faults import Faults
from flue_grpc.agentindex.ledgers import FreshLedger
from flue_grpc.agentindex.opening import open_transcript
from flue_grpc.agentindex.parsing import Start, anchor_at, parse
from flue_grpc.agentindex.records import Entry
from flue_grpc.agentindex.shortage import is_shortage
from flue_grpc.errors import CancelledError, TranscriptNotFoundError
from flue_grpc.limits import SWEEP_READ_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flue_grpc.agentindex.adapters.base import Adapter
    from flue_grpc.agentindex.changes import Stamps
    from flue_grpc.agentindex.discovery import Found
    from flue_grpc.agentindex.opening import OpenTranscript


class Intake:
    """Parses found files into drafts; one sweep at a time uses it.

    ``db`` is the connection that the drafts will be written through, so that it sees
    what was spilled.
    """

    def __init__(
        self,
        db: apsw.Connection,
        adapters: Mapping[str, Adapter[Any]],
        stamps: Stamps,
        pace: Callable[[], None],
        first_tid: int,
    ) -> None:
        """Give out tids from ``first_tid`` or from where the file stands, whichever is later.

        ``pace`` is called after every some lines; it may rest, or raise CancelledError.
        """
        self.db = db
        self.next_tid = max(index_rows.next_tid(db), first_tid)
        self._adapters = adapters
        self._stamps = stamps
        self._pace = pace
        self.faults = Faults()
        self._buffer = bytearray(SWEEP_READ_BYTES)

    def catch_up(self) -> None:
        """Give out no tid that another process has given out meanwhile."""
        self.next_tid = max(self.next_tid, index_rows.next_tid(self.db))

    def take(self, found: Found, previous: Entry | None) -> Draft | None:
        """Parse ``found``; None when it cannot be read. ``previous`` is of the same path.

        Raises apsw.Error when a large draft cannot be spilled, OSError for a shortage of
        ours, and what ``pace`` raises.
        """
        try:
            with open_transcript(found.path, found.place.root) as opened:
                start = self._resumed(found, opened, previous)
                if start is not None and previous is not None:
                    return self._parse(found, opened, start, self._append(previous))
                return self._parse(found, opened, self._fresh(found), self._anew(previous))
        except (TranscriptNotFoundError, OSError) as error:
            if is_shortage(error):
                raise OSError("transcripts cannot be opened for a while") from error
            return None
        except (apsw.Error, CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 - should an adapter fail, it costs its file only
            self.faults.tell(found.place.tool, error)
            return None

    def _parse(self, found: Found, opened: OpenTranscript, start: Start, draft: Draft) -> Draft:
        adapter = self._adapters[found.place.tool]
        try:
            parsed = parse(opened, adapter, found.source, start, draft, self._buffer)
        except Exception:
            if draft.has_spilled:
                index_rows.remove(self.db, draft.tid)
            raise
        draft.state = parsed.state
        stamp = self._stamps.next()
        draft.entry = Entry(draft.tid, found.path, found.place, parsed.record, stamp)
        return draft

    def _fresh(self, found: Found) -> Start:
        return Start(self._adapters[found.place.tool].start(found.source))

    def _anew(self, previous: Entry | None) -> Draft:
        tid = self.next_tid
        self.next_tid += 1
        return Draft(
            tid, previous.tid if previous else None, FreshLedger(None), self._pace, self._spill
        )

    def _append(self, previous: Entry) -> Draft:
        ledger = FreshLedger(_stored_ledger(self.db, previous.tid))
        return Draft(previous.tid, None, ledger, self._pace, self._spill)

    def _resumed(
        self, found: Found, opened: OpenTranscript, previous: Entry | None
    ) -> Start | None:
        """Return where parsing can go on, None when the file has to be read from zero."""
        if previous is None or not _has_only_grown(found, opened, previous):
            return None
        adapter = self._adapters[found.place.tool]
        standing = previous.record.standing
        state = index_rows.load_state(self.db, previous)
        block = index_rows.load_block(self.db, previous.tid, standing.full_blocks)
        if state is None:
            return None
        try:
            return Start(
                msgspec.msgpack.decode(state, type=adapter.state_type),
                standing.offset,
                standing.trail,
                standing.full_blocks,
                usage_blocks.unpack(usage_blocks.load(block)) if block else [],
            )
        except SPOILT:
            return None

    def _spill(self, draft: Draft) -> None:
        if not self.db.in_transaction:
            self.db.execute("begin immediate")
        index_rows.write_tables(self.db, draft)
        draft.ledger.spilled(_stored_ledger(self.db, draft.tid))


def _stored_ledger(db: apsw.Connection, tid: int) -> Callable[[int], Any]:
    return lambda key: index_rows.load_ledger_entry(db, tid, key)


def _has_only_grown(found: Found, opened: OpenTranscript, previous: Entry) -> bool:
    record = previous.record
    key, standing = record.key, record.standing
    return (
        (previous.place, record.source) == (found.place, found.source)
        and key.inode == opened.inode
        and (
            0 <= key.size < opened.size
            or (key.size, key.mtime_ns) == (opened.size, opened.mtime_ns)
        )
        and anchor_at(opened, standing.offset) == standing.anchor
    )
