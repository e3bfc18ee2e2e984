"""``flue-grpc completion SHELL``: completes commands, flags, choices and session ids."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Final

from flue_grpc.commands.connection import add_connection, target_of
from flue_grpc.commands.output import OK
from flue_grpc.commands.running import index_lock, store_lock
from flue_grpc.render.safe import for_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from flue.agentindex.v1 import agent_index_pb2 as pb
    from flue.store.v1 import store_pb2 as st
    from flue_grpc.client import Client
    from flue_grpc.config import Configuration

_IDS: Final = "ids"
_STORE_IDS: Final = "store-ids"
# An id is what a transcript says: a shell would run what it finds in others.
_HARMLESS: Final = re.compile(r"[A-Za-z0-9._:@/+=,-]+")
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
        description="Prints a script for bash, zsh or fish; `ids` and `store-ids` list sessions for it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=(*_SHELLS, _IDS, _STORE_IDS))
    add_connection(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    if arguments.shell == _IDS:
        return _print_ids(arguments, index_lock, _transcripts)
    if arguments.shell == _STORE_IDS:
        return _print_ids(arguments, store_lock, _store_sessions)
    from flue_grpc.cli import make_parser
    from flue_grpc.commands.completion_scripts import script, words_of

    print(script(arguments.shell, words_of(make_parser())), end="")
    return OK


def _print_ids(
    arguments: argparse.Namespace,
    lock: Callable[[Configuration], Path],
    list_them: Callable[[Client], Iterable[pb.Summary | st.Session]],
) -> int:
    """Print ids and titles, only where a server runs: starting one takes too long."""
    from flue_grpc.client import CallError, Client
    from flue_grpc.errors import FlueError

    try:
        target = target_of(arguments, lock)
        if target is not None:
            with Client(target) as client:
                _print_sessions(list_them(client))
    except (CallError, FlueError, OSError):
        pass  # a completion never complains
    return OK


def _transcripts(client: Client) -> Iterable[pb.Summary]:
    return client.agentindex.snapshot(limit=_MOST, timeout=_SECONDS)


def _store_sessions(client: Client) -> Iterable[st.Session]:
    return client.store.list_sessions(limit=_MOST, timeout=_SECONDS)


def _print_sessions(sessions: Iterable[pb.Summary | st.Session]) -> None:
    for session in sessions:
        if _HARMLESS.fullmatch(session.id):
            print(f"{session.id}\t{for_line(session.title)[:_TITLE_CODE_POINTS]}")
