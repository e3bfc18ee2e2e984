"""``flue-grpc resume ID``: how to pick a session up. It is printed, never run."""

from __future__ import annotations

import argparse
from typing import Final

from flue_grpc.commands.connection import add_connection, reporting, transcripts
from flue_grpc.commands.naming import find
from flue_grpc.commands.output import CANNOT, EXIT_CODES, NOTHING, OK, complain
from flue_grpc.render.safe import as_json

_EXAMPLES: Final = """\
examples:
  flue-grpc resume 5f0c                    cd -- /home/me/shop && claude --resume 5f0c2d9e-...
  eval "$(flue-grpc resume 5f0c)"          run it in this shell
"""


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "resume",
        help="print the directory and the command that pick a session up",
        description="Prints one line for a POSIX shell, quoted; it never runs it.",
        epilog=_EXAMPLES + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("id", help="the session's id, or the beginning of one")
    parser.add_argument("--json", action="store_true", help="print command, args and dir")
    add_connection(parser)
    parser.set_defaults(run=reporting(run))


def run(arguments: argparse.Namespace) -> int:
    """Print the line, or the parts as JSON."""
    from flue_grpc.render.plain import to_plain
    from flue_grpc.render.shell import resume_command

    with transcripts(arguments) as client:
        summary = find(client, arguments.id)
    if summary is None:
        return NOTHING
    if not summary.HasField("resume"):
        complain("this session does not say where it ran, so it cannot be picked up")
        return NOTHING
    if arguments.json:
        print(as_json(to_plain(summary.resume)))
        return OK
    try:
        line = resume_command(summary.resume)
    except ValueError:
        complain(f"no line of a shell can name {summary.resume.dir!a}; --json has the parts")
        return CANNOT
    print(line)
    return OK
