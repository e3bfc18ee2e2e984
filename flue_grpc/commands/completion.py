"""``flue-grpc completion SHELL``: completes commands, flags, choices and session ids."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from flue_grpc.commands.connection import add_connection, target_of
from flue_grpc.commands.output import OK
from flue_grpc.commands.running import index_lock
from flue_grpc.render.safe import for_line

if TYPE_CHECKING:
    from flue_grpc.client import Client

_IDS: Final = "ids"
_SHELLS: Final = ("bash", "zsh", "fish")
_SECONDS: Final = 1.0  # nobody waits longer for a completion
_MOST: Final = 200
_TITLE_CODE_POINTS: Final = 60
_EXAMPLES: Final = """\
examples:
  source <(flue-grpc completion bash)      in ~/.bashrc, or zsh in ~/.zshrc
  flue-grpc completion fish > ~/.config/fish/completions/flue-grpc.fish
"""


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "completion",
        help="print the completions for a shell",
        description="Prints a script for bash, zsh or fish; `ids` lists sessions for it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=(*_SHELLS, _IDS))
    add_connection(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    if arguments.shell == _IDS:
        return _print_ids(arguments)
    from flue_grpc.cli import make_parser
    from flue_grpc.commands.completion_scripts import script, words_of

    print(script(arguments.shell, words_of(make_parser())), end="")
    return OK


def _print_ids(arguments: argparse.Namespace) -> int:
    """Print ids and titles, only where a server runs: starting one takes too long."""
    from flue_grpc.client import CallError, Client
    from flue_grpc.errors import FlueError

    try:
        target = target_of(arguments, index_lock)
        if target is not None:
            with Client(target) as client:
                _print_sessions(client)
    except (CallError, FlueError, OSError):
        pass  # a completion never complains
    return OK


def _print_sessions(client: Client) -> None:
    for summary in client.agentindex.snapshot(limit=_MOST, timeout=_SECONDS):
        print(f"{for_line(summary.id)}\t{for_line(summary.title)[:_TITLE_CODE_POINTS]}")
