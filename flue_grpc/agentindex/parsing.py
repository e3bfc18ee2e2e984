"""Parsing one open transcript, from its start or from where the last sweep stood.

The result is the same for both (behaviour B4): what lies behind the last newline counts
in the answer, but never in the stored state, wherever a line was cut.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from flue_grpc.agentindex import usage_blocks
from flue_grpc.agentindex.adapters.base import FileFacts
from flue_grpc.agentindex.ledgers import TrialLedger
from flue_grpc.agentindex.line_blocks import LineBlocks
from flue_grpc.agentindex.lines import LineBlock
from flue_grpc.agentindex.records import FileKey, Record, Standing, Trail
from flue_grpc.limits import CHECKPOINT_BYTES, EXACT_CHECKPOINTS, HEAD_BYTES, USAGE_BLOCK_LINES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flue_grpc.agentindex.adapters.base import Adapter, Ledger, LineUsage, Source
    from flue_grpc.agentindex.opening import OpenTranscript

_ANCHOR_BYTES = 12


class Sink(Protocol):
    """Where the parser leaves what is not bounded by a record's size."""

    @property
    def ledger(self) -> Ledger:
        """What the transcript has counted."""

    def add_block(self, number: int, data: bytes) -> None:
        """Keep a block of usage; one of the same number is replaced."""

    def add_checkpoint(self, offset: int, model: str) -> None:
        """Keep the model in force from ``offset`` on."""

    def set_tail(self, data: bytes) -> None:
        """Keep the usage of the unterminated last line, empty for none."""


@dataclass(slots=True)
class Start:
    """Where parsing begins; ``lines`` are those of the block that is not full yet."""

    state: Any
    offset: int = 0
    trail: Trail = field(default_factory=Trail)
    full_blocks: int = 0
    lines: list[LineUsage] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Parsed:
    """One parsed transcript: its record, and its state after the last newline."""

    record: Record
    state: bytes


def parse(  # noqa: PLR0913, PLR0917 - the file, its reader, and where things go
    opened: OpenTranscript,
    adapter: Adapter[Any],
    source: Source,
    start: Start,
    sink: Sink,
    buffer: bytearray,
) -> Parsed:
    """Parse from ``start`` to the size that ``opened`` had. Raises OSError.

    ``buffer`` is the working memory of ``LineBlocks``.
    """
    lines = LineBlocks(opened.fd, start.offset, opened.size, buffer)
    blocks = _Blocks(start, sink)
    trail = _feed(lines, adapter, start, blocks, sink)
    state = msgspec.msgpack.encode(start.state)
    # From here on the state is a trial: what is kept ends at the last newline.
    final = start.state
    added: Sequence[LineUsage] = ()
    if lines.tail:
        tail = LineBlock.of_line(lines.tail, lines.offset)
        added = adapter.feed(final, tail, TrialLedger(sink.ledger)).usage
    sink.set_tail(usage_blocks.pack(added) if added else b"")
    standing = Standing(
        lines.offset,
        anchor_at(opened, lines.offset),
        adapter.context(final).mirror,
        trail,
        blocks.finish(),
    )
    # A file cut below the size it had when it was opened is parsed anew next time.
    size = opened.size if lines.end == opened.size else -1
    key = FileKey(size, opened.mtime_ns, opened.inode, opened.mode)
    facts = FileFacts(opened.size, opened.mtime_ns // 1000, opened.revision)
    summary = adapter.summary(final, source, facts)
    return Parsed(Record(source, key, standing, summary), state)


def anchor_at(opened: OpenTranscript, offset: int) -> bytes:
    """Digest the first bytes and those before ``offset``, at most HEAD_BYTES each."""
    length = min(offset, HEAD_BYTES)
    before = os.pread(opened.fd, length, offset - length)
    return blake2b(opened.head[:length] + before, digest_size=_ANCHOR_BYTES).digest()


def _feed(
    lines: Iterable[LineBlock], adapter: Adapter[Any], start: Start, blocks: _Blocks, sink: Sink
) -> Trail:
    """Feed all terminated lines; return how far the checkpoints are laid."""
    state, trail = start.state, start.trail
    model = adapter.context(state).model
    for block in lines:
        usage, models = adapter.feed(state, block, sink.ledger)
        if models or trail.exact_until is not None:
            trail = _lay_checkpoints(trail, block, {-1: model, **dict(models)}, sink)
            model = adapter.context(state).model
        blocks.add(usage)
    return trail


def _lay_checkpoints(trail: Trail, block: LineBlock, models: dict[int, str], sink: Sink) -> Trail:
    """Lay those that a block needs; -1 in ``models`` stands for its beginning."""
    model = models[-1]
    for end in block.ends:
        model = models.get(end, model)
        if model != trail.model or trail.exact_until is not None:
            trail = _lay_checkpoint(trail, block.offset + end + 1, model, sink)
    return trail


def _lay_checkpoint(trail: Trail, offset: int, model: str, sink: Sink) -> Trail:
    exact_until = trail.exact_until
    if trail.count >= EXACT_CHECKPOINTS:
        exact_until = trail.offset if exact_until is None else exact_until
        if offset - trail.offset < CHECKPOINT_BYTES:
            return Trail(trail.offset, trail.model, trail.count, exact_until)
    sink.add_checkpoint(offset, model)
    return Trail(offset, model, trail.count + 1, exact_until)


class _Blocks:
    """Gathers usage lines into blocks of equal length."""

    __slots__ = ("_full", "_lines", "_sink")

    def __init__(self, start: Start, sink: Sink) -> None:
        self._lines = start.lines
        self._full = start.full_blocks
        self._sink = sink

    def add(self, lines: list[LineUsage]) -> None:
        self._lines.extend(lines)
        while len(self._lines) >= USAGE_BLOCK_LINES:
            self._sink.add_block(self._full, usage_blocks.pack(self._lines[:USAGE_BLOCK_LINES]))
            del self._lines[:USAGE_BLOCK_LINES]
            self._full += 1

    def finish(self) -> int:
        """Hand over what is left; return the number of full blocks."""
        if self._lines:
            self._sink.add_block(self._full, usage_blocks.pack(self._lines))
        return self._full
