"""Usage as a table with bars for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from flue_grpc.render.amounts import bar, money, short_number, total_tokens
from flue_grpc.render.columns import GAP, Column, fitting
from flue_grpc.render.safe import for_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flue.agentindex.v1 import agent_index_pb2 as pb

_BAR_WIDTHS: Final = (6, 24)
_BAR_HEAD: Final = "tokens"
_HEADS: Final = ("total", "in", "out", "cached", "written", "cost", "sessions", "msgs")
_DROPPED_FIRST: Final = ("sessions", "msgs", "cost", "written", "cached", "in", "out")


def usage_table(keys: Sequence[str], rows: Sequence[pb.UsageRow], width: int) -> Table:
    """Make a table of ``width`` columns: keys, a bar of all tokens, the buckets, cost, counts.

    Where that is too narrow the bar is left out first, then figures, so that keys
    are whole.
    """
    names = zip(*(tuple(_name(key) for key in row.keys) for row in rows), strict=True)
    figures = zip(*(_figures(row) for row in rows), strict=True)
    named = [Column(head, texts) for head, texts in zip(keys, names, strict=True)]
    counted = [Column(head, texts) for head, texts in zip(_HEADS, figures, strict=True)]
    room = width - sum(column.width + GAP for column in named) + GAP
    kept, left = fitting(counted, _DROPPED_FIRST, room)
    narrowest, widest = _BAR_WIDTHS
    has_bar = len(kept) == len(counted) and left >= narrowest + GAP
    bars = _bars(rows, min(widest, left - GAP)) if has_bar else None
    table = Table(box=None, pad_edge=False, header_style="dim")
    for key in named:
        table.add_column(key.head, style="bold", overflow="fold", no_wrap=key.width <= width)
    if bars is not None:
        table.add_column(bars.head, no_wrap=True, style="cyan", min_width=min(widest, left - GAP))
    for column in kept:
        table.add_column(column.head, justify="right", no_wrap=True)
    shown = (*named, *([bars] if bars is not None else []), *kept)
    for row in zip(*(column.texts for column in shown), strict=True):
        table.add_row(*row)
    return table


def _name(key: str) -> Text:
    return Text(for_line(key) or "-")


def _bars(rows: Sequence[pb.UsageRow], width: int) -> Column:
    totals = [total_tokens(row.tokens) for row in rows]
    most = max(totals)
    return Column(_BAR_HEAD, tuple(Text(bar(total, most, width)) for total in totals))


def _figures(row: pb.UsageRow) -> tuple[Text, ...]:
    tokens = row.tokens
    buckets = (tokens.input, tokens.output, tokens.cache_read, tokens.cache_write)
    return (
        *(Text(short_number(figure)) for figure in (total_tokens(tokens), *buckets)),
        Text(money(row)),
        Text(short_number(row.session_count)),
        Text(short_number(row.message_count)),
    )
