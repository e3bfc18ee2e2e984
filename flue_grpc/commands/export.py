"""``flue-grpc export``: sessions of the Store, or one transcript as a document."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flue_grpc.commands import database
from flue_grpc.commands.connection import add_connection, reporting, transcripts
from flue_grpc.commands.naming import find
from flue_grpc.commands.output import CANNOT, EXIT_CODES, NOTHING, OK, complain
from flue_grpc.commands.output_file import output_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flue.agentindex.v1 import agent_index_pb2 as pb
    from flue_grpc.client import Client

_OF_STORE: Final = ("jsonl", "markdown")
_OF_TRANSCRIPT: Final = ("html", "markdown", "json")
_SUFFIXES: Final = {
    ".jsonl": "jsonl",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".json": "json",
}
_HINT: Final = "; the transcript of an agent is exported by --transcript ID"
_EXAMPLES: Final = """\
examples:
  flue-grpc export > sessions.jsonl        every session of the Store; import reads it
  flue-grpc export --session ses_1 --format markdown
  flue-grpc export --transcript 5f0c -o session.html
  flue-grpc export --transcript 5f0c --format json | jq .summary
"""


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "export",
        help="write sessions of the Store, or a transcript as HTML, Markdown or JSON",
        description="Writes sessions of the Store, all or one, or the transcript of an agent. "
        "The HTML is one file that runs nothing and fetches nothing.",
        epilog=_EXAMPLES + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--session", default="", metavar="ID", help="only this session of the Store")
    what.add_argument(
        "--transcript", metavar="ID", help="an agent's session, or the beginning of its id"
    )
    parser.add_argument(
        "--format",
        choices=tuple(dict.fromkeys(_OF_STORE + _OF_TRANSCRIPT)),
        help="jsonl or markdown of the Store; html, markdown or json of a transcript "
        "(default: as FILE ends, else the first)",
    )
    parser.add_argument("-o", dest="output", type=Path, metavar="FILE", help="write to FILE")
    add_connection(parser)
    parser.set_defaults(run=reporting(run), operation="export")


def run(arguments: argparse.Namespace) -> int:
    """Write what was asked for; 1 when it is not there, 2 when it cannot be done."""
    formats = _OF_TRANSCRIPT if arguments.transcript else _OF_STORE
    arguments.format = arguments.format or _format_of(arguments.output) or formats[0]
    if arguments.format not in formats:
        hint = "" if arguments.transcript else _HINT
        complain(f"--format {arguments.format} is not one of {', '.join(formats)}{hint}")
        return CANNOT
    if arguments.transcript:
        return _export_transcript(arguments)
    return database.run(arguments)


def _format_of(output: Path | None) -> str:
    """Tell a format by the name of its file, "" when that says none."""
    return _SUFFIXES.get(output.suffix.lower(), "") if output else ""


def _export_transcript(arguments: argparse.Namespace) -> int:
    with transcripts(arguments) as client:
        summary = find(client, arguments.transcript)
        if summary is None:
            return NOTHING
        with output_file(arguments.output) as file:
            for piece in _writer(arguments.format)(summary, _messages(client, summary)):
                file.write(piece.encode())
    return OK


def _writer(name: str) -> Callable[[pb.Summary, Iterable[pb.Message]], Iterator[str]]:
    from flue_grpc.render import documents, html

    writers = {
        "html": html.to_html,
        "markdown": documents.to_markdown,
        "json": documents.to_json,
    }
    return writers[name]


def _messages(client: Client, summary: pb.Summary) -> Iterator[pb.Message]:
    """Read every message with its whole text, and show how far that is."""
    from flue_grpc.commands.progress import bar

    pages = client.agentindex.read_transcript(summary.tool, summary.id)
    with bar("exporting") as show:
        for response in pages.responses():
            for message in response.page.messages:
                yield _whole(client, summary, message, response.page.revision)
            show(response.page.next, response.page.file_size)


def _whole(client: Client, summary: pb.Summary, message: pb.Message, revision: str) -> pb.Message:
    if message.truncated:
        message.text = client.agentindex.read_message(
            summary.tool, summary.id, message.offset, message.index, revision=revision
        )
        message.truncated = False
    return message
