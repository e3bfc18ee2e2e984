"""The command ``flue-grpc``. Imports little, so that ``--help`` is there at once."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Final

from flue_grpc.commands.parser import Parser
from flue_grpc.commands.signals import ended_in_order
from flue_grpc.commands.streams import prepare_streams
from flue_grpc.errors import StartupError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

# Each module of flue_grpc.commands has add_parsers(subparsers), which sets `run`.
COMMANDS: Final = (
    "sessions",
    "show",
    "search",
    "tail",
    "usage",
    "resume",
    "memory",
    "export",
    "completion",
    "serve",
    "config",
    "health",
    "database",
    "doctor",
    "token",
)
# What other programs take as a word, and people try first.
_WORDS: Final = {"help": "--help", "version": "--version"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code, 2 for one that cannot start.

    Raises SystemExit for help, a mistake in usage, and after SIGTERM or SIGHUP.
    """
    # gRPC's C core writes its own account of what we report in words.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        prepare_streams()
        parsed = _parse(sys.argv[1:] if arguments is None else arguments)
        _warn(parsed.command)
        with ended_in_order():
            code: int = parsed.run(parsed)
        sys.stdout.flush()
    except StartupError as error:
        _say(str(error))
        return 2
    except UnicodeEncodeError as error:
        # An argument or a directory, which may be any bytes where it is no path to open.
        _say(f"{error.object!a} is not UTF-8 text")
        return 2
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        _drop(sys.stdout)
        if isinstance(error, BrokenPipeError):
            # Whoever read our output has enough.
            return 141
        where = f"{error.filename}: " if error.filename else ""
        _say(f"{where}{error.strerror or error}")
        return 2
    return code


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the arguments; without any, or with a wrong one, the process ends here."""
    parser, commands = _parser_and_commands()
    if arguments and arguments[0] in _WORDS:
        arguments = [*arguments[1:], _WORDS[arguments[0]]]
    # The program's own flags take no value, so the first word is the command.
    first = arguments[0] if arguments else "--help"
    if not first.startswith("-") and first not in commands:
        from difflib import get_close_matches

        close = get_close_matches(first, commands, n=1)
        advice = f"did you mean {close[0]!r}?" if close else "flue-grpc --help lists them"
        parser.error(f"there is no command {first!r}; {advice}")
    return parser.parse_args(arguments or [first])


def _warn(command: str) -> None:
    """Tell of variables that change nothing; the shell that completes a line reads no warning."""
    if command == "completion":
        return
    from flue_grpc.config import unknown_variables

    for text in unknown_variables(os.environ):
        print(f"flue-grpc: {text}", file=sys.stderr)


def _say(text: str) -> None:
    try:
        print(f"flue-grpc: {text}", file=sys.stderr)
    except OSError:
        _drop(sys.stderr)


def _drop(stream: TextIO) -> None:
    """Write what can still be written; without this Python complains of the rest at exit."""
    with suppress(OSError):
        stream.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def make_parser() -> argparse.ArgumentParser:
    """Make the parser with every command."""
    return _parser_and_commands()[0]


def _parser_and_commands() -> tuple[argparse.ArgumentParser, tuple[str, ...]]:
    parser = Parser(
        prog="flue-grpc",
        description="An agent daemon's store, and an index over the transcripts of "
        "Claude Code, Codex and Pi, over gRPC.",
        epilog="Exit code, unless a command says another: 0 found or done, 1 nothing found, "
        "2 it could not be done.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", required=True
    )
    for name in COMMANDS:
        import_module(f"flue_grpc.commands.{name}").add_parsers(subparsers)
    return parser, tuple(subparsers.choices)


class _Version(argparse.Action):
    """Looks the version up only when it is asked for: that takes as long as all the rest."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        del namespace, values, option_string
        from importlib.metadata import version

        print("flue-grpc", version("flue-grpc"), flush=True)
        parser.exit()
