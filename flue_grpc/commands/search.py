"""``flue-grpc search QUERY``: messages that match, as they are found."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from flue_grpc.commands.connection import (
    add_connection,
    ranked_transcripts,
    reporting,
    transcripts,
)
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
    from flue.agentindex.v1 import agent_index_pb2 as pb
    from flue_grpc.client import ItemStream

_LIMIT: Final = 50
_ROLES: Final = ("user", "assistant", "system")
_KINDS: Final = ("text", "thinking", "tool_call", "tool_result")
_EXAMPLES: Final = """\
examples:
  flue-grpc search "connection reset"      this very text, newest session first
  flue-grpc search --ranked 'retry "back off" -test'
  flue-grpc search deadlock --role user --since 7d
  flue-grpc search 锁定 --json | jq -r .id
"""


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "search",
        help="search the messages of all sessions",
        description="Prints hits as they are found.",
        epilog=_EXAMPLES + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("query", help="a text; with --ranked words, phrases, prefix* and -word")
    parser.add_argument(
        "--ranked", dest="is_ranked", action="store_true", help="best hits first, by words"
    )
    parser.add_argument(
        "--limit", type=limit, default=_LIMIT, metavar="N", help="most hits, 0 for all"
    )
    parser.add_argument("--role", action="append", default=[], choices=_ROLES, help="of this role")
    parser.add_argument("--kind", action="append", default=[], choices=_KINDS, help="of this kind")
    parser.add_argument("--subagents", action="store_true", help="search subagents' sessions too")
    add_filters(parser)
    add_output(parser)
    add_connection(parser)
    parser.set_defaults(run=reporting(run))


def run(arguments: argparse.Namespace) -> int:
    """Print the hits."""
    from flue.agentindex.v1 import agent_index_pb2 as pb
    from flue_grpc.render.amounts import counted

    mode = pb.SEARCH_MODE_RANKED if arguments.is_ranked else pb.SEARCH_MODE_SUBSTRING
    connect = ranked_transcripts if arguments.is_ranked else transcripts
    with connect(arguments) as client:
        hits = client.agentindex.search(
            arguments.query,
            filters_of(arguments),
            mode=mode,
            roles=[pb.Role.Value(f"ROLE_{role.upper()}") for role in arguments.role],
            kinds=[pb.Kind.Value(f"KIND_{kind.upper()}") for kind in arguments.kind],
            include_subagents=arguments.subagents,
            limit=arguments.limit or None,
        )
        count = _print(style_of(arguments), hits)
        last = hits.last
    if last is not None and last.building:
        complain("transcripts are still being read: there may be more")
    if last is not None and last.next_page_token:
        verb = "is" if count == 1 else "are"
        complain(f"there {verb} more than {counted(count, 'hit')}; --limit 0 shows all")
    if arguments.is_ranked and not count and not any(map(str.isalnum, arguments.query)):
        complain("a ranked query needs a word; without --ranked any text is found")
    return OK if count else nothing(f"no message matches; {WHERE_TO_LOOK}")


def _print(style: Style, hits: ItemStream[pb.SearchResponse, pb.Hit]) -> int:
    if style is Style.RICH:
        return _print_rich(hits)
    count = 0
    for hit in hits:
        count += 1
        if style is Style.JSON:
            print_json(hit)
        else:
            print_fields(hit.tool, hit.id, hit.offset, hit.index, hit.snippet)
    return count


def _print_rich(hits: ItemStream[pb.SearchResponse, pb.Hit]) -> int:
    from flue_grpc.commands.progress import spinner
    from flue_grpc.render.amounts import counted, size
    from flue_grpc.render.hits import render_hit

    console, count, session, read = make_console(), 0, ("", ""), 0
    with spinner("searching", console) as spin:
        for response in hits.responses():
            for hit in response.hits:
                count += 1
                console.print(render_hit(hit, with_head=(hit.tool, hit.id) != session))
                session = (hit.tool, hit.id)
            # A further call counts from zero again.
            read = max(read, response.bytes_scanned)
            # A ranked search reads its index, not transcripts.
            progress = f"{size(read)} read, " if read else ""
            spin(f"{progress}{counted(count, 'hit')}")
    return count
