"""``flue-grpc show ID``: one transcript."""

from __future__ import annotations

import argparse
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from flue_grpc.commands.connection import add_connection, reporting, transcripts
from flue_grpc.commands.naming import find
from flue_grpc.commands.numbers import natural, offset, positive
from flue_grpc.commands.output import (
    CANNOT,
    EXIT_CODES,
    NOTHING,
    OK,
    Style,
    add_output,
    complain,
    print_json,
    style_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flue.agentindex.v1 import agent_index_pb2 as pb
    from flue_grpc.client import Client

_EXAMPLES: Final = """\
examples:
  flue-grpc show 5f0c                      page through a session
  flue-grpc show 5f0c --last 20            its last 20 messages
  flue-grpc show 5f0c --tools --thinking   with tool calls and reasoning open
  flue-grpc show 5f0c --raw > session.txt  the texts alone
  flue-grpc show 5f0c --at 20480           from a hit of search on
"""


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "show",
        help="show a session's messages",
        description="Shows a session: prose as Markdown, tool calls on one line each.",
        epilog=_EXAMPLES + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("id", help="the session's id, or the beginning of one")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--last", type=positive, metavar="N", help="only the last N messages")
    where.add_argument(
        "--at", type=offset, metavar="OFFSET", help="from the line at this offset on"
    )
    parser.add_argument("--limit", type=natural, default=0, metavar="N", help="most messages")
    parser.add_argument("--tools", action="store_true", help="show tool calls and results whole")
    parser.add_argument("--thinking", action="store_true", help="show reasoning whole")
    parser.add_argument("--system", action="store_true", help="show what a harness injected")
    parser.add_argument("--whole", action="store_true", help="fetch texts that a page cuts")
    parser.add_argument("--no-pager", action="store_true", help="print on the terminal at once")
    add_output(parser).add_argument(
        "--raw", action="store_true", help="texts alone, as they are, unfolded"
    )
    add_connection(parser)
    parser.set_defaults(run=reporting(run))


def run(arguments: argparse.Namespace) -> int:
    """Print the messages."""
    if arguments.last and arguments.limit:
        complain("--last and --limit contradict each other")
        return CANNOT
    with transcripts(arguments) as client:
        summary = find(client, arguments.id)
        if summary is None:
            return NOTHING
        messages = read(client, summary, arguments)
        if arguments.at is not None:
            beginning = list(islice(messages, 1))
            if not beginning:
                complain(f"there is no message at offset {arguments.at} or after it")
                return NOTHING
            messages = chain(beginning, messages)
        _print(summary, messages, arguments)
    return OK


def _print(
    summary: pb.Summary, messages: Iterable[pb.Message], arguments: argparse.Namespace
) -> None:
    style = style_of(arguments)
    if arguments.raw:
        _print_raw(messages)
    elif style is Style.JSON:
        for message in messages:
            print_json(message)
    elif style is Style.RICH:
        _print_rich(summary, messages, arguments)
    else:
        _print_plain(messages)


def read(
    client: Client, summary: pb.Summary, arguments: argparse.Namespace
) -> Iterator[pb.Message]:
    """Read what the flags ask for, in file order, whole texts where wanted."""
    for message in _chosen(client, summary, arguments):
        if message.truncated and arguments.whole:
            message.text = client.agentindex.read_message(
                summary.tool, summary.id, message.offset, message.index
            )
            message.truncated = False
        yield message


def last_messages(client: Client, summary: pb.Summary, count: int) -> tuple[pb.Page, ...]:
    """Read the pages that hold the last ``count`` messages, in file order."""
    from flue.agentindex.v1 import agent_index_pb2 as pb

    stream = client.agentindex.read_transcript(
        summary.tool, summary.id, direction=pb.DIRECTION_BACKWARD, limit=count
    )
    return tuple(reversed([response.page for response in stream.responses()]))


def _chosen(
    client: Client, summary: pb.Summary, arguments: argparse.Namespace
) -> Iterable[pb.Message]:
    if arguments.last:
        pages = last_messages(client, summary, arguments.last)
        return [message for page in pages for message in page.messages]
    return client.agentindex.read_transcript(
        summary.tool, summary.id, offset=arguments.at, limit=arguments.limit
    )


def _print_rich(
    summary: pb.Summary, messages: Iterable[pb.Message], arguments: argparse.Namespace
) -> None:
    from flue_grpc.commands.pager import paged, unpaged
    from flue_grpc.render.messages import Folds, render
    from flue_grpc.render.tables import session_table

    folds = Folds(tools=arguments.tools, thinking=arguments.thinking, system=arguments.system)
    with (unpaged if arguments.no_pager else paged)() as console:
        console.print(session_table([summary], console.width, is_first=True))
        for message in messages:
            for part in render(message, folds):
                console.print(part)


def _print_plain(messages: Iterable[pb.Message]) -> None:
    from flue_grpc.render.messages import one_line

    for message in messages:
        print(one_line(message))


def _print_raw(messages: Iterable[pb.Message]) -> None:
    from flue_grpc.render.safe import for_terminal

    for message in messages:
        print(for_terminal(message.text))
