"""Tokens, recorded cost and messages by day, model, tool, directory or session.

Only what transcripts record, nothing estimated (contract "Usage"). A figure belongs to
the time and model of its line; each indexed transcript counts once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import msgspec

from flue_grpc.agentindex import index_rows, usage_blocks
from flue_grpc.agentindex.damage import as_written
from flue_grpc.agentindex.days import Days, load_zone
from flue_grpc.agentindex.values import TokenUsage
from flue_grpc.limits import READ_BATCH_ROWS
from flue_grpc.listing import Cursor, Placed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flue_grpc.agentindex.catalog import Catalog, Session
    from flue_grpc.agentindex.index_file import IndexFile
    from flue_grpc.agentindex.usage_blocks import UsageBlock
    from flue_grpc.cancel import Cancel

GroupBy = Literal["day", "model", "tool", "cwd", "session"]
Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """What to count and how to group it.

    ``tools`` and ``cwd`` judge each transcript by itself, a subagent too; empty ones
    take all. ``since`` ≤ t < ``until`` is in microseconds; lines without a time are
    left out when either is set. ``time_zone`` is an IANA name for the day, "" is UTC.
    """

    tools: tuple[str, ...] = ()
    cwd: str = ""
    since: int | None = None
    until: int | None = None
    group_by: tuple[GroupBy, ...] = ()
    time_zone: str = ""


class UsageRow(msgspec.Struct, frozen=True):
    """One group; ``keys`` are in the order of ``group_by``, empty where not recorded.

    ``cost_usd`` is None when no line recorded a cost. A session and its subagents
    count as one in ``session_count``.
    """

    keys: Keys
    tokens: TokenUsage
    cost_usd: float | None
    session_count: int
    message_count: int


class UsageCursor(Cursor, frozen=True):
    """The place after the row with these keys."""

    keys: Keys


@dataclass(frozen=True, slots=True)
class UsageView:
    """What one Usage call answers: rows in the order of their keys."""

    building: bool
    items: Iterator[Placed[UsageRow]]


@dataclass(slots=True)
class _Group:
    sums: list[int] = field(default_factory=lambda: [0, 0, 0, 0, 0])
    costs: list[float] = field(default_factory=list)
    sessions: set[int] = field(default_factory=set)


def list_usage(
    file: IndexFile, catalog: Catalog, query: UsageQuery, after: UsageCursor | None, cancel: Cancel
) -> Iterator[Placed[UsageRow]]:
    """Yield the rows behind ``after``. Raises BadTimeZoneError at once, later apsw.Error."""
    return _rows(_Counting(query, catalog), file, after, cancel)


def _rows(
    counting: _Counting, file: IndexFile, after: UsageCursor | None, cancel: Cancel
) -> Iterator[Placed[UsageRow]]:
    groups = counting.run(file, cancel)
    for keys in sorted(groups):
        if after is None or keys > after.keys:
            yield Placed(_row(keys, groups[keys]), UsageCursor(keys))


def _row(keys: Keys, group: _Group) -> UsageRow:
    *buckets, messages = map(usage_blocks.clamp, group.sums)
    cost = math.fsum(group.costs) if group.costs else None
    return UsageRow(keys, TokenUsage(*buckets), cost, len(group.sessions), messages)


class _Counting:
    """Adds up all blocks of usage; most by their sums, the others line by line."""

    def __init__(self, query: UsageQuery, catalog: Catalog) -> None:
        self._query = query
        self._days = Days(load_zone(query.time_zone))
        self._by_day = "day" in query.group_by
        self._by_model = "model" in query.group_by
        self._indexed = {
            tid: (session, topmost)
            for tid, (session, topmost) in catalog.indexed().items()
            if _is_wanted(session, query)
        }
        self._groups: dict[Keys, _Group] = {}

    def run(self, file: IndexFile, cancel: Cancel) -> dict[Keys, _Group]:
        """Count everything; no read transaction lasts longer than a batch of rows."""
        if not self._query.group_by:
            self._groups[()] = _Group()
        after = 0
        while True:
            cancel.check()
            with file.reader() as db:
                rows = index_rows.load_blocks(db, after, READ_BATCH_ROWS)
            for place, tid, data in rows:
                after = place
                if tid in self._indexed:
                    cancel.check()
                    with as_written():
                        self._count(usage_blocks.load(data), *self._indexed[tid])
            if len(rows) < READ_BATCH_ROWS:
                return self._groups

    def _count(self, block: UsageBlock, session: Session, topmost: Session) -> None:
        if self._is_outside(block):
            return
        if not self._is_uniform(block):
            self._count_lines(block, session, topmost)
            return
        day = self._days.name(block.first) if self._by_day else ""
        group = self._group(session, topmost, day, block.models[0])
        group.sums = [a + b for a, b in zip(group.sums, block.sums, strict=True)]
        if block.costs:
            group.costs.extend(cost for cost in usage_blocks.costs(block) if cost is not None)

    def _count_lines(self, block: UsageBlock, session: Session, topmost: Session) -> None:
        """Count line by line; lines in a row mostly belong to one group."""
        columns = (block.model_indexes, *block.buckets, block.counts)
        unpacked = [usage_blocks.integers(column, block.rows) for column in columns]
        last: tuple[str, int] | None = None
        group = _Group()
        for time, cost, model, a, b, c, d, count in zip(
            usage_blocks.times(block), usage_blocks.costs(block), *unpacked, strict=True
        ):
            if not self._is_inside(time):
                continue
            day = self._days.name(time) if self._by_day else ""
            if last != (day, model):
                last = day, model
                group = self._group(session, topmost, day, block.models[model])
            sums = group.sums
            sums[0] += a
            sums[1] += b
            sums[2] += c
            sums[3] += d
            sums[4] += count
            if cost is not None:
                group.costs.append(cost)

    def _group(self, session: Session, topmost: Session, day: str, model: str) -> _Group:
        keys = self._keys(session, topmost, day, model)
        group = self._groups.get(keys)
        if group is None:
            group = self._groups[keys] = _Group()
        group.sessions.add(topmost.entry.tid)
        return group

    def _keys(self, session: Session, topmost: Session, day: str, model: str) -> Keys:
        summary = session.summary
        values = {
            "day": day,
            "model": model,
            "tool": summary.tool,
            "cwd": summary.cwd,
            "session": f"{summary.tool}:{topmost.summary.id}",
        }
        return tuple([values[group] for group in self._query.group_by])

    def _is_outside(self, block: UsageBlock) -> bool:
        """Whether no line of the block can be wanted."""
        since, until = self._query.since, self._query.until
        if since is None and until is None:
            return False
        if block.first is None or block.last is None:
            return True
        return (since is not None and block.last < since) or (
            until is not None and block.first >= until
        )

    def _is_uniform(self, block: UsageBlock) -> bool:
        """Whether all lines of the block are wanted and belong to one group."""
        if self._by_model and len(block.models) > 1:
            return False
        if block.first is None or block.last is None:
            return True
        is_limited = self._query.since is not None or self._query.until is not None
        if is_limited and not (
            block.timeless == 0 and self._is_inside(block.first) and self._is_inside(block.last)
        ):
            return False
        return not self._by_day or (
            block.timeless == 0 and self._days.is_one_day(block.first, block.last)
        )

    def _is_inside(self, time: int | None) -> bool:
        since, until = self._query.since, self._query.until
        if time is None:
            return since is None and until is None
        return (since is None or since <= time) and (until is None or time < until)


def _is_wanted(session: Session, query: UsageQuery) -> bool:
    summary = session.summary
    is_of_tool = not query.tools or summary.tool in query.tools
    return is_of_tool and (not query.cwd or summary.cwd == query.cwd)
