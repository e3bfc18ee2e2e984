"""The command ``flue-grpc``. Imports little, so that ``--help`` is there at once."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final

from flue_grpc.commands.parser import Parser
from flue_grpc.errors import StartupError

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """Run a command; returns its exit code, 2 for one that cannot start."""
    # gRPC's C core writes its own account of what we report in words.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        _print_any_text()
        parsed = _parse(sys.argv[1:] if arguments is None else arguments)
        _warn(parsed.command)
        code: int = parsed.run(parsed)
        sys.stdout.flush()
    except StartupError as error:
        print(f"flue-grpc: {error}", file=sys.stderr)
        return 2
    except UnicodeEncodeError as error:
        # An argument or a directory, which may be any bytes where it is no path to open.
        print(f"flue-grpc: {error.object!a} is not UTF-8 text", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        _drop_output()
        if isinstance(error, BrokenPipeError):
            # Whoever read our output has enough.
            return 141
        where = f"{error.filename}: " if error.filename else ""
        print(f"flue-grpc: {where}{error.strerror or error}", file=sys.stderr)
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


def _print_any_text() -> None:
    """Escape what standard output's encoding has not, such as a title in another script."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _warn(command: str) -> None:
    """Tell of variables that change nothing; the shell that completes a line reads no warning."""
    if command == "completion":
        return
    from flue_grpc.config import unknown_variables

    for text in unknown_variables(os.environ):
        print(f"flue-grpc: {text}", file=sys.stderr)


def _drop_output() -> None:
    """Write what can still be written; without this Python complains of the rest at exit."""
    with suppress(OSError):
        sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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

        print("flue-grpc", version("flue-grpc"))
        parser.exit()
