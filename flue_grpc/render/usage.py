"""Usage as a table with bars for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from flue_grpc.render.amounts import bar, money, short_number, total_tokens
from flue_grpc.render.safe import for_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flue.agentindex.v1 import agent_index_pb2 as pb

_BAR_WIDTHS: Final = (6, 24)
_FIGURES_WIDTH: Final = 62
_COUNTS_FROM_WIDTH: Final = 100  # a narrower terminal has no room for them
_KEY_WIDTH: Final = 12
_FIGURES: Final = ("total", "in", "out", "cached", "written", "cost")
_COUNTS: Final = ("sessions", "msgs")


def usage_table(keys: Sequence[str], rows: Sequence[pb.UsageRow], width: int) -> Table:
    """Make a table of ``width`` columns: keys, a bar of all tokens, the buckets, cost, counts."""
    narrowest, widest = _BAR_WIDTHS
    has_counts = width >= _COUNTS_FROM_WIDTH
    bar_width = max(narrowest, min(widest, width - _FIGURES_WIDTH - _KEY_WIDTH * len(keys)))
    table = Table(box=None, pad_edge=False, header_style="dim")
    for key in keys:
        table.add_column(key, style="bold", overflow="fold")
    table.add_column("tokens", no_wrap=True, min_width=bar_width, style="cyan")
    for head in (*_FIGURES, *(_COUNTS if has_counts else ())):
        table.add_column(head, justify="right", no_wrap=True, min_width=len(head))
    most = max((total_tokens(row.tokens) for row in rows), default=0)
    for row in rows:
        counts = (row.session_count, row.message_count) if has_counts else ()
        table.add_row(*_cells(row, most, bar_width), *(Text(short_number(n)) for n in counts))
    return table


def _cells(row: pb.UsageRow, most: int, bar_width: int) -> tuple[Text, ...]:
    tokens, total = row.tokens, total_tokens(row.tokens)
    figures = (total, tokens.input, tokens.output, tokens.cache_read, tokens.cache_write)
    return (
        *(Text(for_line(key) or "-") for key in row.keys),
        Text(bar(total, most, bar_width)),
        *(Text(short_number(figure)) for figure in figures),
        Text(money(row)),
    )
