"""Filling the RANKED index from transcripts, in small transactions (behaviour B7).

What it reads is what a page of the transcript shows. It may stop anywhere and goes on
from there: what was committed is a whole number of lines of each transcript.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from flue_grpc import limits
from flue_grpc.agentindex import ranked_index
from flue_grpc.agentindex.adapters.base import Context
from flue_grpc.agentindex.escapes import escape_kinds
from flue_grpc.agentindex.faults import Faults
from flue_grpc.agentindex.lines import read_lines
from flue_grpc.agentindex.opening import open_transcript
from flue_grpc.agentindex.ranked_index import MESSAGE_BITS, Part, sort_of
from flue_grpc.errors import TranscriptNotFoundError
from flue_grpc.text.index_form import index_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import apsw

    from flue_grpc.agentindex.adapters.base import Adapter
    from flue_grpc.agentindex.lines import Line
    from flue_grpc.agentindex.opening import OpenTranscript
    from flue_grpc.agentindex.records import Entry
    from flue_grpc.agentindex.values import Message


class Row(NamedTuple):
    """One message of the index: its text in index form, its place, what it is filtered by."""

    form: str
    offset: int
    line_index: int
    ts: int | None
    sort: int


class Portion(msgspec.Struct, frozen=True):
    """Rows that are written together, and how far the transcript is indexed with them.

    ``is_tail``: they are of an unterminated last line, and will be made anew.
    """

    tid: int
    rows: list[Row]
    until: int
    size: int
    kinds: int
    mirror: bool
    is_tail: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """What is not indexed as it should be: transcripts that lag, and tids to forget.

    ``bytes`` are those of the transcripts that remain to be read.
    """

    behind: tuple[Entry, ...]
    stale: tuple[int, ...]
    bytes: int


def remaining(entries: Iterable[Entry], parts: Mapping[int, Sequence[Part]]) -> Work:
    """Compare the index with what the sweep knows; the newest transcripts come first."""
    behind: list[Entry] = []
    stale: list[int] = []
    present: set[int] = set()
    size = 0
    for entry in entries:
        present.add(entry.tid)
        last = parts[entry.tid][-1] if entry.tid in parts else None
        summary = entry.record.summary
        if summary is None or (last is not None and last.covers(entry)):
            continue
        if last is not None and last.mirror != entry.record.standing.mirror:
            stale.append(entry.tid)
            last = None
        behind.append(entry)
        size += summary.file_size - (last.until if last else 0)
    behind.sort(key=lambda entry: (-entry.record.key.mtime_ns, entry.tid))
    stale += [tid for tid in parts if tid not in present]
    return Work(tuple(behind), tuple(stale), size)


def fill(
    db: apsw.Connection,
    work: Work,
    adapters: Mapping[str, Adapter[Any]],
    pace: Callable[[], None],
) -> None:
    """Do ``work`` through ``db``, which is in no transaction and stays so.

    ``pace`` is called per line, between transactions, and may rest or raise. What cannot
    be read is left for the next time. Raises apsw.Error.
    """
    for tid in work.stale:
        pace()
        while not ranked_index.purge(db, tid):
            pace()
    writer, faults = Writer(db), Faults()
    for entry in work.behind:
        pace()
        _fill_one(writer, adapters[entry.place.tool], entry, pace, faults)
    writer.finish(pace)


def _fill_one(
    writer: Writer, adapter: Adapter[Any], entry: Entry, pace: Callable[[], None], faults: Faults
) -> None:
    part = ranked_index.load_last_part(writer.db, entry.tid)
    summary, start = entry.record.summary, part.until if part else 0
    if summary is None:
        return
    try:
        with open_transcript(entry.path, entry.place.root) as opened:
            # Another file by now: the sweep will give it another tid.
            if opened.has_revision(summary.revision) and opened.size >= start:
                for portion in _Reading(opened, adapter, entry, pace, faults).portions(start):
                    writer.add(portion)
    except (OSError, TranscriptNotFoundError):
        return


class _Reading:
    """Makes rows of the lines of one open transcript."""

    def __init__(
        self,
        opened: OpenTranscript,
        adapter: Adapter[Any],
        entry: Entry,
        pace: Callable[[], None],
        faults: Faults,
    ) -> None:
        self._faults = faults
        self._opened = opened
        self._adapter = adapter
        self._tid = entry.tid
        self._context = Context(mirror=entry.record.standing.mirror)
        self._pace = pace

    def portions(self, start: int) -> Iterator[Portion]:
        """Yield what begins at ``start``; the last portion is the tail, often without rows."""
        lines: list[Line] = []
        until = end = first = start
        tail: list[Row] = []
        for line in read_lines(self._opened.fd, start, self._opened.size):
            self._pace()
            end = line.end
            if not line.terminated:
                tail = self._rows(line)
                break
            lines.append(line)
            until = end
            if end - first >= limits.RANKED_PORTION_BYTES:
                yield self._portion(lines)
                lines, first = [], end
        if lines:
            yield self._portion(lines)
        yield Portion(self._tid, tail, until, end, 0, self._context.mirror, is_tail=True)

    def _portion(self, lines: list[Line]) -> Portion:
        rows = [row for line in lines for row in self._rows(line)]
        data = b"\n".join([line.data for line in lines]) + b"\n"
        end = lines[-1].end
        return Portion(self._tid, rows, end, end, escape_kinds(data), self._context.mirror)

    def _rows(self, line: Line) -> list[Row]:
        try:
            messages, self._context = self._adapter.messages(line.data, line.offset, self._context)
            return [row_of(message) for message in messages if message.text]
        except Exception as error:  # noqa: BLE001 - should an adapter fail, it costs its line only
            self._faults.tell(self._adapter.tool, error)
            return []


def row_of(message: Message) -> Row:
    """Return what is indexed of a message."""
    sort = sort_of(message.role, message.kind)
    return Row(index_text(message.text), message.offset, message.index, message.ts, sort)


class Writer:
    """Holds portions until they are worth a transaction; none lasts long."""

    def __init__(self, db: apsw.Connection) -> None:
        """Write through ``db``, which is in no transaction between the calls."""
        self.db = db
        self.written = 0
        self._held: deque[Portion] = deque()
        self._rows = 0
        self._bytes = 0

    def add(self, portion: Portion) -> None:
        """Take the next portion of a transcript. Raises apsw.Error."""
        self._held.append(portion)
        self._rows += len(portion.rows)
        self._bytes += sum(len(row.form) for row in portion.rows)
        is_full = self._rows >= limits.RANKED_COMMIT_MESSAGES
        if is_full or self._bytes >= limits.RANKED_COMMIT_BYTES:
            self.flush()

    def finish(self, pace: Callable[[], None]) -> None:
        """Write what is held, and make one segment of all after much. Raises apsw.Error.

        ``pace`` is called between transactions, and may rest or raise.
        """
        self.flush()
        if self.written >= limits.RANKED_MERGE_MESSAGES:
            _merge(self.db, pace)

    def flush(self) -> None:
        """Write what is held, in as many transactions as it takes."""
        while self._held:
            with ranked_index.transaction(self.db) as number:
                end = time.monotonic() + limits.RANKED_COMMIT_SECONDS
                self._write(self._held.popleft(), number)
                while self._held and time.monotonic() < end:
                    self._write(self._held.popleft(), number)
            if self._held:
                time.sleep(limits.RANKED_YIELD_SECONDS)
        self._rows = self._bytes = 0

    def _write(self, portion: Portion, number: int) -> None:
        part, rows = self._part_for(portion), portion.rows
        most = limits.RANKED_PART_MESSAGES
        if portion.is_tail:
            # Of more there is nothing to find until the line ends.
            rows = rows[:most]
        while len(rows) > most:
            part = self._write_rows(part, rows[:most], number)
            full = msgspec.structs.replace(part, messages=most, mirror=portion.mirror)
            ranked_index.save_part(self.db, full)
            part, rows = ranked_index.new_part(self.db, part.tid, part.kinds), rows[most:]
        part = self._write_rows(part, rows, number)
        is_tail, count = portion.is_tail, len(rows)
        done = msgspec.structs.replace(
            part,
            messages=part.messages + (0 if is_tail else count),
            tail=count if is_tail else 0,
            until=portion.until,
            size=portion.size,
            kinds=part.kinds | portion.kinds,
            mirror=portion.mirror,
        )
        ranked_index.save_part(self.db, done)

    def _write_rows(self, part: Part, rows: list[Row], number: int) -> Part:
        """Insert rows behind those of a part, and return it with its new ``newest``."""
        first = part.ordinal << MESSAGE_BITS | part.messages
        self.db.executemany(
            "insert into ranked_index(rowid, text) values(?, ?)",
            ((rowid, row.form) for rowid, row in enumerate(rows, first)),
        )
        self.db.executemany(
            "insert into ranked_messages values(?, ?, ?, ?, ?, ?)",
            (
                (rowid, row.offset, row.line_index, row.ts, row.sort, number)
                for rowid, row in enumerate(rows, first)
            ),
        )
        self.written += len(rows)
        return msgspec.structs.replace(part, newest=_newest(part, rows))

    def _part_for(self, portion: Portion) -> Part:
        """Return the part that takes the portion, without the tail that it replaces."""
        part = ranked_index.load_last_part(self.db, portion.tid)
        if part is None:
            return ranked_index.new_part(self.db, portion.tid, 0)
        end = part.messages + part.tail
        ranked_index.delete_rows(self.db, part.ordinal, part.messages, end)
        if part.messages + len(portion.rows) <= limits.RANKED_PART_MESSAGES:
            return part
        ranked_index.save_part(self.db, msgspec.structs.replace(part, tail=0))
        return ranked_index.new_part(self.db, portion.tid, part.kinds)


def _newest(part: Part, rows: list[Row]) -> int | None:
    times = [row.ts for row in rows if row.ts is not None]
    return max(times if part.newest is None else (*times, part.newest), default=None)


def _merge(db: apsw.Connection, pace: Callable[[], None]) -> None:
    """Make one segment of all, step by step, so that nobody waits long for the file."""
    pages = -limits.RANKED_MERGE_PAGES
    while ranked_index.merge_some(db, pages):
        pace()
        pages = limits.RANKED_MERGE_PAGES
