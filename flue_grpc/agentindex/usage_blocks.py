"""Usage of single lines, packed in columns: some 20 bytes a line instead of a row each.

A block tells its sums and its span of time, so that most are never unpacked.
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.agentindex.adapters.base import LineUsage
from flue_grpc.agentindex.values import TokenUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_TIME: Final = -(2**63)  # in a column of times; no adapter makes a time before 1970
INT64_MAX: Final = 2**63 - 1
_NO_COST: Final = math.nan
_CODES: Final = "bhiq"


class UsageBlock(msgspec.Struct, frozen=True, array_like=True):
    """Consecutive usage lines of one transcript.

    ``first`` and ``last`` are the earliest and latest time in microseconds, None when
    no line has one; ``timeless`` counts the lines without. ``models`` are those that
    occur. ``sums`` are those of the four buckets and of the messages. A column is an
    array typecode and machine bytes; an empty one is all zero.
    """

    rows: int
    first: int | None
    last: int | None
    timeless: int
    models: tuple[str, ...]
    sums: tuple[int, int, int, int, int]
    times: bytes
    model_indexes: bytes
    buckets: tuple[bytes, bytes, bytes, bytes]
    counts: bytes
    costs: bytes


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(UsageBlock)


def pack(lines: Sequence[LineUsage]) -> bytes:
    """Pack lines, at least one, in their order."""
    times = [NO_TIME if line.ts is None else line.ts for line in lines]
    known = times if NO_TIME not in times else [time for time in times if time != NO_TIME]
    models = [line.model for line in lines]
    numbers = {model: number for number, model in enumerate(dict.fromkeys(models))}
    counts = [line.message_count for line in lines]
    tokens = [line.tokens for line in lines]
    a, b = [usage.input for usage in tokens], [usage.output for usage in tokens]
    c, d = [usage.cache_read for usage in tokens], [usage.cache_write for usage in tokens]
    block = UsageBlock(
        rows=len(times),
        first=min(known, default=None),
        last=max(known, default=None),
        timeless=len(times) - len(known),
        models=tuple(numbers),
        sums=(_sum(a), _sum(b), _sum(c), _sum(d), _sum(counts)),
        times=_column(times, "q"),
        model_indexes=_column([numbers[model] for model in models]) if len(numbers) > 1 else b"",
        buckets=(_column(a), _column(b), _column(c), _column(d)),
        counts=_column(counts),
        costs=_cost_column([line.cost_usd for line in lines]),
    )
    return _encoder.encode(block)


def load(data: bytes) -> UsageBlock:
    """Return the block that ``pack`` made, its columns still packed."""
    return _decoder.decode(data)


def integers(column: bytes, rows: int) -> Sequence[int]:
    """Unpack one of a block's columns of whole numbers."""
    if not column:
        return (0,) * rows
    return array(chr(column[0]), column[1:])


def times(block: UsageBlock) -> Sequence[int | None]:
    """Unpack the times in microseconds; None where none was recorded."""
    column = integers(block.times, block.rows)
    if not block.timeless:
        return column
    return [None if time == NO_TIME else time for time in column]


def costs(block: UsageBlock) -> Sequence[float | None]:
    """Unpack the costs in US dollars; None where none was recorded."""
    if not block.costs:
        return (None,) * block.rows
    return [None if math.isnan(cost) else cost for cost in array("d", block.costs)]


def unpack(block: UsageBlock) -> list[LineUsage]:
    """Return the lines that were packed."""
    rows = block.rows
    buckets = zip(*(integers(column, rows) for column in block.buckets), strict=True)
    return [
        LineUsage(time, block.models[model], TokenUsage(*tokens), cost, n)
        for time, model, tokens, cost, n in zip(
            times(block),
            integers(block.model_indexes, rows),
            buckets,
            costs(block),
            integers(block.counts, rows),
            strict=True,
        )
    ]


def clamp(value: int) -> int:
    """Keep a sum within what the wire and the file can hold."""
    return max(-INT64_MAX, min(value, INT64_MAX))


def _sum(values: Sequence[int]) -> int:
    return clamp(sum(values))


def _column(values: Sequence[int], codes: str = _CODES) -> bytes:
    """Pack numbers by the first of ``codes`` that holds all; each is wider than the last."""
    if not any(values):
        return b""
    for code in codes:
        try:
            return code.encode() + array(code, values).tobytes()
        except OverflowError:
            continue  # the next type is wider
    return b"q" + array("q", [clamp(value) for value in values]).tobytes()


def _cost_column(values: Sequence[float | None]) -> bytes:
    if values.count(None) == len(values):
        return b""
    return array("d", [_NO_COST if value is None else value for value in values]).tobytes()
