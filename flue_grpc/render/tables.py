"""Sessions as a table for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from flue_grpc.render.amounts import moment, money, short_number, total_tokens
from flue_grpc.render.safe import for_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import JustifyMethod

    from flue.agentindex.v1 import agent_index_pb2 as pb

TOOL_STYLES: Final = {"claude": "bright_red", "codex": "green", "pi": "magenta"}
_SHORT_ID: Final = 8
_HEADS: Final = ("ended", "tool", "id", "messages", "tokens", "cost", "title")
_NUMBERS: Final = ("messages", "tokens", "cost")
_NARROWEST_TITLE: Final = 16
_GAP: Final = 2  # between two columns


def session_table(summaries: Iterable[pb.Summary], width: int, *, is_first: bool) -> Table:
    """Make a table of ``width`` columns, with a head when it is the first of several."""
    shown = list(summaries)
    length = short_length(summary.id for summary in shown)
    rows = [_cells(summary, length) for summary in shown]
    table = Table(box=None, pad_edge=False, show_header=is_first, header_style="dim")
    for head in _HEADS:
        justify: JustifyMethod = "right" if head in _NUMBERS else "left"
        table.add_column(head, justify=justify, no_wrap=True)
    # Of a long title rich would take the room of all other columns.
    left = width - sum(_width(rows, n) + _GAP for n in range(len(_HEADS) - 1))
    for row in rows:
        row[-1].truncate(max(left, _NARROWEST_TITLE), overflow="ellipsis")
        table.add_row(*row)
    return table


def _width(rows: list[tuple[Text, ...]], column: int) -> int:
    return max(len(_HEADS[column]), *(row[column].cell_len for row in rows), 0)


def _cells(summary: pb.Summary, id_length: int) -> tuple[Text, ...]:
    tokens = total_tokens(summary.tokens) + total_tokens(summary.subagent_tokens)
    title = Text(for_line(summary.title) or "(untitled)")
    if summary.parent_id:
        title = Text("↳ ", style="dim") + title
    return (
        Text(moment(summary.ended_at, None), style="dim"),
        Text(for_line(summary.tool), style=TOOL_STYLES.get(summary.tool, "cyan")),
        Text(for_line(summary.id[:id_length]), style="bold"),
        Text(short_number(summary.message_count)),
        Text(short_number(tokens)),
        Text(money(summary)),
        title,
    )


def short_length(ids: Iterable[str]) -> int:
    """Find how many first characters tell all of ``ids`` apart, at least eight."""
    known = set(ids)
    longest = max((len(each) for each in known), default=_SHORT_ID)
    for length in range(_SHORT_ID, longest):
        if len({each[:length] for each in known}) == len(known):
            return length
    return max(longest, _SHORT_ID)
