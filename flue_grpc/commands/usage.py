"""``flue-grpc usage``: recorded tokens and costs, by day, model, tool, directory or session."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from flue_grpc.commands.connection import add_connection, reporting, transcripts
from flue_grpc.commands.filters import WHERE_TO_LOOK, add_filters, filters_of, local_zone
from flue_grpc.commands.output import (
    CANNOT,
    EXIT_CODES,
    OK,
    Style,
    add_output,
    complain,
    make_console,
    nothing,
    print_fields,
    print_json,
    print_rows,
    style_of,
)

if TYPE_CHECKING:
    from flue.agentindex.v1 import agent_index_pb2 as pb

_KEYS: Final = ("day", "model", "tool", "cwd", "session")
_HEADS: Final = (
    "input",
    "output",
    "cache_read",
    "cache_write",
    "cost_usd",
    "sessions",
    "messages",
)
_EXAMPLES: Final = """\
examples:
  flue-grpc usage                          by day, in this machine's time zone
  flue-grpc usage --by model --since 30d
  flue-grpc usage --by day --by tool --csv > usage.csv
  flue-grpc usage --by none                one line with the total
"""


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "usage",
        help="sum the tokens and costs that transcripts record",
        description="Sums what transcripts record; nothing is estimated.",
        epilog=_EXAMPLES + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--by",
        action="extend",
        type=_keys,
        metavar="KEY",
        help=f"{', '.join(_KEYS)}, several in their order, or none (default: day)",
    )
    parser.add_argument(
        "--time-zone", default=local_zone(), metavar="ZONE", help="that days are reckoned in"
    )
    add_filters(parser)
    add_output(parser).add_argument(
        "--csv", dest="style", action="store_const", const=Style.CSV, help="a table with a head"
    )
    add_connection(parser)
    parser.set_defaults(run=reporting(run))


def run(arguments: argparse.Namespace) -> int:
    """Print the rows."""
    from flue.agentindex.v1 import agent_index_pb2 as pb

    keys = arguments.by or ["day"]
    if "none" in keys:
        if set(keys) != {"none"}:
            complain("--by none and another key contradict each other")
            return CANNOT
        keys = []
    with transcripts(arguments) as client:
        stream = client.agentindex.usage(
            filters_of(arguments),
            group_by=[pb.GroupBy.Value(f"GROUP_BY_{key.upper()}") for key in keys],
            time_zone=arguments.time_zone,
        )
        rows = list(stream)
        last = stream.last
    _print(style_of(arguments), keys, rows)
    if last is not None and last.building:
        complain("transcripts are still being read: there may be more")
    return OK if rows else nothing(f"no session matches; {WHERE_TO_LOOK}")


def _keys(text: str) -> list[str]:
    """Read keys with commas between them."""
    keys = text.split(",")
    for key in keys:
        if key not in (*_KEYS, "none"):
            known = ", ".join((*_KEYS, "none"))
            raise argparse.ArgumentTypeError(f"{key!r} is none of {known}")
    return keys


def _print(style: Style, keys: list[str], rows: list[pb.UsageRow]) -> None:
    if style is Style.RICH and rows:
        from flue_grpc.render.usage import usage_table

        console = make_console()
        console.print(usage_table(keys, rows, console.width))
    elif style is Style.CSV:
        print_rows([(*keys, *_HEADS), *(_values(row) for row in rows)])
    elif style is Style.JSON:
        for row in rows:
            print_json(row)
    else:
        for row in rows:
            print_fields(*_values(row))


def _values(row: pb.UsageRow) -> tuple[str | int | float, ...]:
    cost = row.cost_usd if row.HasField("cost_usd") else ""
    tokens = row.tokens
    return (
        *row.keys,
        tokens.input,
        tokens.output,
        tokens.cache_read,
        tokens.cache_write,
        cost,
        row.session_count,
        row.message_count,
    )
