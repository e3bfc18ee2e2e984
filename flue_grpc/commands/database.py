"""The commands on the Store's database: ``backup``, ``restore``, ``import``, ``check``.

``export`` is parsed with that of transcripts, and runs here too.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from flue_grpc.commands.options import configuration_of
from flue_grpc.commands.output import CANNOT, NOTHING
from flue_grpc.errors import FlueError, NotFoundError, StartupError

_EXAMPLES: Final = {
    "backup": "flue-grpc backup ~/store-2026-03-01.db",
    "restore": "flue-grpc restore ~/store-2026-03-01.db",
    "import": "flue-grpc import sessions.jsonl\n  flue-grpc export | ssh host flue-grpc import -",
    "check": "flue-grpc check\n  flue-grpc check --repair",
}
_EXIT_CODES: Final = """\
exit code: 0 done, 1 something was refused or is damaged, 2 it could not be done
"""


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the four commands."""
    command = _add(subparsers, "backup", "copy the database, also while a server runs")
    command.add_argument("destination", type=Path, metavar="DEST", help="the new file")
    command = _add(subparsers, "restore", "put a backup in the database's place")
    command.add_argument("source", type=Path, metavar="SRC", help="a file made by backup")
    command = _add(subparsers, "import", "read sessions that export wrote as jsonl")
    command.add_argument("file", metavar="FILE", help="the file, or - for standard input")
    command = _add(subparsers, "check", "check the database and its search indexes")
    command.add_argument("--repair", action="store_true", help="fill the search indexes anew")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; 0 when all is well, 1 when something was refused, 2 when it failed.

    A session that is not there is 1 too.
    """
    from flue_grpc.commands import store_commands

    try:
        return store_commands.run(arguments, configuration_of(arguments).settings)
    except StartupError:
        raise
    except FlueError as error:
        print(f"flue-grpc: {error}", file=sys.stderr)
        return NOTHING if isinstance(error, NotFoundError) else CANNOT


def _add(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    command = subparsers.add_parser(
        name,
        help=text,
        description=text.capitalize() + ".",
        epilog=f"examples:\n  {_EXAMPLES[name]}\n\n{_EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--data-dir", metavar="DIR", help="directory of the Store")
    command.add_argument("--config", metavar="FILE", help="configuration file (TOML)")
    command.set_defaults(run=run, operation=name)
    return command
