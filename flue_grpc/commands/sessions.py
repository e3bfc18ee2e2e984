"""``flue-grpc sessions``: the sessions of every coding agent, newest first."""

from __future__ import annotations

import argparse
from itertools import islice
from typing import TYPE_CHECKING, Final

from flue_grpc.commands.connection import add_connection, reporting, transcripts
from flue_grpc.commands.filters import WHERE_TO_LOOK, add_filters, filters_of
from flue_grpc.commands.numbers import limit
from flue_grpc.commands.output import (
    EXIT_CODES,
    OK,
    Style,
    add_output,
    complain,
    make_console,
    nothing,
    print_fields,
    print_json,
    style_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flue.agentindex.v1 import agent_index_pb2 as pb

_LIMIT: Final = 50
_EXAMPLES: Final = """\
examples:
  flue-grpc sessions                       the newest 50
  flue-grpc sessions --tool codex --since 7d
  flue-grpc sessions --cwd . --limit 0     all of this directory
  flue-grpc sessions --json | jq -r .id
"""


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "sessions",
        help="list the sessions of coding agents, newest first",
        description="Lists sessions, newest first.",
        epilog=_EXAMPLES + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--limit", type=limit, default=_LIMIT, metavar="N", help="most sessions, 0 for all"
    )
    parser.add_argument(
        "--subagents", action="store_true", help="list the sessions of subagents too"
    )
    add_filters(parser)
    add_output(parser)
    add_connection(parser)
    parser.set_defaults(run=reporting(run))


def run(arguments: argparse.Namespace) -> int:
    """Print the sessions."""
    with transcripts(arguments) as client:
        listed = client.agentindex.snapshot(
            filters_of(arguments),
            include_subagents=arguments.subagents,
            limit=arguments.limit or None,
        )
        count = _print(style_of(arguments), listed)
        last = listed.last
    if last is not None and last.hidden_subagents:
        complain(f"hidden: {last.hidden_subagents} of subagents; --subagents shows them")
    if last is not None and last.building:
        complain("transcripts are still being read: there may be more")
    return OK if count else nothing(f"no session matches; {WHERE_TO_LOOK}")


def _print(style: Style, summaries: Iterable[pb.Summary]) -> int:
    if style is Style.RICH:
        return _print_table(summaries)
    count = 0
    for summary in summaries:
        count += 1
        if style is Style.JSON:
            print_json(summary)
        else:
            _print_line(summary)
    return count


def _print_line(summary: pb.Summary) -> None:
    ended = summary.ended_at.ToJsonString() if summary.HasField("ended_at") else ""
    print_fields(ended, summary.tool, summary.id, summary.message_count, summary.cwd, summary.title)


def _print_table(summaries: Iterable[pb.Summary]) -> int:
    from flue_grpc.render.tables import session_table

    console, count = make_console(), 0
    rest = iter(summaries)
    # A table knows its widths only when it is whole; parts show long lists soon.
    while part := list(islice(rest, _LIMIT)):
        console.print(session_table(part, console.width, is_first=not count))
        count += len(part)
    return count
