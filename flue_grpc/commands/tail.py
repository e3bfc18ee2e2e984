"""``flue-grpc tail ID``: follows a transcript as it is written."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Final

from flue_grpc.commands.connection import add_connection, reporting, transcripts
from flue_grpc.commands.naming import find
from flue_grpc.commands.numbers import natural
from flue_grpc.commands.output import (
    EXIT_CODES,
    NOTHING,
    OK,
    Style,
    add_output,
    complain,
    make_console,
    print_json,
    style_of,
)
from flue_grpc.commands.show import last_messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from flue.agentindex.v1 import agent_index_pb2 as pb
    from flue_grpc.client import CallError, Client

_LINES: Final = 10
_REPLACED: Final = "CURSOR_GONE"
_EXAMPLES: Final = """\
examples:
  flue-grpc tail 5f0c                      the last 10 messages, then each new one
  flue-grpc tail 5f0c -n 0 --json | jq -r 'select(.kind == "text").text'
"""


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "tail",
        help="follow a session as it is written",
        description="Follows a session until Ctrl-C; goes on by itself after a lost connection.",
        epilog=_EXAMPLES + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("id", help="the session's id, or the beginning of one")
    parser.add_argument(
        "-n", dest="last", type=natural, default=_LINES, metavar="N", help="show the last N first"
    )
    parser.add_argument("--tools", action="store_true", help="show tool calls and results whole")
    parser.add_argument("--thinking", action="store_true", help="show reasoning whole")
    parser.add_argument("--system", action="store_true", help="show what a harness injected")
    add_output(parser)
    add_connection(parser)
    parser.set_defaults(run=reporting(run))


def run(arguments: argparse.Namespace) -> int:
    """Print messages until interrupted."""
    from flue_grpc.client import RetryPolicy

    with transcripts(arguments, RetryPolicy(patience=math.inf), _say_of_break) as client:
        summary = find(client, arguments.id)
        if summary is None:
            return NOTHING
        show = _printer(arguments)
        while _ends_early(client, summary, arguments.last, show):
            complain("the tool has rewritten this session; it goes on with the end of the new one")
    return OK


def _ends_early(
    client: Client, summary: pb.Summary, count: int, show: Callable[[pb.Message], None]
) -> bool:
    """Show the last messages and each new one; True when the file was replaced meanwhile."""
    from flue_grpc.client import CallError

    try:
        offset, revision = _show_last(client, summary, count, show)
        stream = client.agentindex.read_transcript(
            summary.tool, summary.id, offset=offset, revision=revision, follow=True
        )
        with stream:
            for message in stream:
                show(message)
    except CallError as error:
        if error.reason != _REPLACED:
            raise
        return True
    return False


def _say_of_break(error: CallError | None) -> None:
    if error is None:
        complain("the server is back")
    else:
        complain("the connection to the server is lost; trying again until Ctrl-C")


def _show_last(
    client: Client, summary: pb.Summary, count: int, show: Callable[[pb.Message], None]
) -> tuple[int, str]:
    """Show the last messages, and return where to go on."""
    pages = last_messages(client, summary, max(count, 1))
    messages = [message for page in pages for message in page.messages]
    for message in messages[-count:] if count else []:
        show(message)
    return pages[-1].next, pages[-1].revision


def _printer(arguments: argparse.Namespace) -> Callable[[pb.Message], None]:
    style = style_of(arguments)
    if style is Style.JSON:
        return print_json
    from flue_grpc.render.messages import Folds, one_line, render

    if style is Style.PLAIN:
        return lambda message: print(one_line(message), flush=True)
    console = make_console()
    folds = Folds(tools=arguments.tools, thinking=arguments.thinking, system=arguments.system)

    def show(message: pb.Message) -> None:
        for part in render(message, folds):
            console.print(part)

    return show
