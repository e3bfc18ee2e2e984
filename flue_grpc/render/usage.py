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

_BAR_WIDTH: Final = 24
_BUCKETS: Final = ("input", "output", "cache read", "cache write")


def usage_table(keys: Sequence[str], rows: Sequence[pb.UsageRow]) -> Table:
    """Make a table: keys, a bar of all tokens, the four buckets, cost and counts."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for key in keys:
        table.add_column(key, style="bold", overflow="ellipsis", no_wrap=True)
    table.add_column("tokens", no_wrap=True, min_width=_BAR_WIDTH, style="cyan")
    for head in ("total", *_BUCKETS, "cost", "sessions", "messages"):
        table.add_column(head, justify="right", no_wrap=True)
    most = max((total_tokens(row.tokens) for row in rows), default=0)
    for row in rows:
        table.add_row(*_cells(row, most))
    return table


def _cells(row: pb.UsageRow, most: int) -> tuple[Text, ...]:
    total = total_tokens(row.tokens)
    buckets = (row.tokens.input, row.tokens.output, row.tokens.cache_read, row.tokens.cache_write)
    return (
        *(Text(for_line(key) or "-") for key in row.keys),
        Text(bar(total, most, _BAR_WIDTH)),
        Text(short_number(total)),
        *(Text(short_number(bucket)) for bucket in buckets),
        Text(money(row)),
        Text(short_number(row.session_count)),
        Text(short_number(row.message_count)),
    )
