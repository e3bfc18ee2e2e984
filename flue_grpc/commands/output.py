"""What a command prints: for a person on a terminal, for a pipe, or as JSON."""

from __future__ import annotations

import csv
import os
import sys
from enum import Enum
from typing import TYPE_CHECKING, Final

from flue_grpc.render.safe import as_json, for_cell, for_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from google.protobuf.message import Message
    from rich.console import Console

OK: Final = 0
NOTHING: Final = 1  # nothing was found, or what was named is not there
CANNOT: Final = 2  # it could not be done at all
EXIT_CODES: Final = """
exit code: 0 found or done, 1 nothing found, 2 it could not be done
"""


class Style(Enum):
    """How a command prints."""

    RICH = "rich"
    PLAIN = "plain"
    JSON = "json"
    CSV = "csv"


def add_output(parser: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    """Add ``--json`` and ``--plain``, to a group for others that contradict them."""
    group = parser.add_argument_group("output").add_mutually_exclusive_group()
    group.add_argument(
        "--json", dest="style", action="store_const", const=Style.JSON, help="one object per line"
    )
    group.add_argument(
        "--plain",
        dest="style",
        action="store_const",
        const=Style.PLAIN,
        help="tab-separated lines, as when piped",
    )
    return group


def style_of(arguments: argparse.Namespace) -> Style:
    """Take what was asked for; without that, what suits standard output."""
    if arguments.style is not None:
        return Style(arguments.style)
    return Style.RICH if sys.stdout.isatty() else Style.PLAIN


def make_console() -> Console:
    """Make a console for standard output that takes text as it is."""
    from rich.console import Console

    from flue_grpc.render.console import guarded

    return guarded(Console(markup=False, emoji=False, highlight=False))


def print_json(message: Message) -> None:
    """Print one message as one line."""
    from flue_grpc.render.plain import to_plain

    print(as_json(to_plain(message)), flush=True)


def print_fields(*fields: object) -> None:
    """Print one line of tab-separated fields, each of them safe and on one line."""
    print("\t".join(for_line(str(field)) for field in fields), flush=True)


def print_rows(rows: Iterable[Iterable[object]]) -> None:
    """Print rows as CSV that no spreadsheet takes for formulas."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for row in rows:
        writer.writerow([for_cell(cell) if isinstance(cell, str) else cell for cell in row])


def complain(text: str) -> None:
    """Say something on standard error."""
    print(f"flue-grpc: {for_line(text)}", file=sys.stderr)


def nothing(text: str) -> int:
    """Say to a person, and to no pipe, that nothing was found; returns that exit code."""
    if sys.stderr.isatty():
        complain(text)
    return NOTHING


def is_coloured() -> bool:
    """Say whether standard output takes colours, as rich decides for tables."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "") in {"dumb", "unknown"}
    return sys.stdout.isatty() and not is_plain


def is_watched() -> bool:
    """Say whether somebody looks at standard error, so that progress is worth showing."""
    return sys.stderr.isatty() and os.environ.get("TERM", "") != "dumb"
