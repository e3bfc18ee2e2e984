"""Sessions as a table for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from flue_grpc.render.amounts import moment, money, short_number, total_tokens
from flue_grpc.render.safe import for_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flue.agentindex.v1 import agent_index_pb2 as pb

TOOL_STYLES: Final = {"claude": "bright_red", "codex": "green", "pi": "magenta"}
_SHORT_ID: Final = 8


def session_table(summaries: Iterable[pb.Summary], *, is_first: bool) -> Table:
    """Make a table of sessions, with a head when it is the first of several."""
    table = Table(box=None, pad_edge=False, show_header=is_first, header_style="dim")
    table.add_column("ended", style="dim", no_wrap=True)
    table.add_column("tool", no_wrap=True)
    table.add_column("id", no_wrap=True, overflow="fold")
    table.add_column("messages", justify="right", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("cost", justify="right", no_wrap=True)
    table.add_column("title", ratio=1, no_wrap=True, overflow="ellipsis")
    shown = list(summaries)
    length = short_length(summary.id for summary in shown)
    for summary in shown:
        table.add_row(*_cells(summary, length))
    return table


def _cells(summary: pb.Summary, id_length: int) -> tuple[Text, ...]:
    tokens = total_tokens(summary.tokens) + total_tokens(summary.subagent_tokens)
    title = Text(for_line(summary.title) or "(untitled)")
    if summary.parent_id:
        title = Text("↳ ", style="dim") + title
    return (
        Text(moment(summary.ended_at, None)),
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
