"""Sessions as a table for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from flue_grpc.render.amounts import moment, money, short_number, total_tokens
from flue_grpc.render.columns import Column, fitting
from flue_grpc.render.safe import for_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import JustifyMethod

    from flue.agentindex.v1 import agent_index_pb2 as pb

TOOL_STYLES: Final = {"claude": "bright_red", "codex": "green", "pi": "magenta"}
_SHORT_ID: Final = 8
_HEADS: Final = ("ended", "tool", "id", "messages", "tokens", "cost", "title")
_NUMBERS: Final = ("messages", "tokens", "cost")
_DROPPED_FIRST: Final = ("cost", "messages", "tokens", "ended", "tool")
_NARROWEST_TITLE: Final = 16


def session_table(summaries: Iterable[pb.Summary], width: int, *, is_first: bool) -> Table:
    """Make a table of ``width`` columns, with a head when it is the first of several.

    Where that is too narrow columns are left out, so that ids are whole.
    """
    shown = list(summaries)
    length = short_length(summary.id for summary in shown)
    cells = zip(*(_cells(summary, length) for summary in shown), strict=True)
    columns = [Column(head, texts) for head, texts in zip(_HEADS, cells, strict=True)]
    *facts, title = columns
    # Of a long title rich would take the room of all other columns.
    shortest = min(_NARROWEST_TITLE, title.width)
    kept, left = fitting(facts, _DROPPED_FIRST, width - shortest)
    for text in title.texts:
        text.truncate(max(1, shortest + left), overflow="ellipsis")
    table = Table(box=None, pad_edge=False, show_header=is_first, header_style="dim")
    for column in (*kept, title):
        justify: JustifyMethod = "right" if column.head in _NUMBERS else "left"
        table.add_column(column.head, justify=justify, no_wrap=True)
    for row in zip(*(column.texts for column in (*kept, title)), strict=True):
        table.add_row(*row)
    return table


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
