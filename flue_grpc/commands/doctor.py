"""``flue-grpc doctor``: what is where, whether it can be used, and what to do."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Final

from flue_grpc.commands.options import add_settings, configuration_of
from flue_grpc.commands.output import is_coloured

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flue_grpc.doctor.findings import Finding

_MARKS: Final = {"ok": "ok  ", "note": "note", "problem": "BAD "}
_COLOURS: Final = {"ok": "32", "note": "33", "problem": "31;1"}
_SUBJECT_WIDTH: Final = 13
_EXAMPLES: Final = """\
examples:
  flue-grpc doctor
  flue-grpc doctor --json | jq 'select(.level == "problem")'
"""


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "doctor",
        help="say what was found where, and what to do about what is wrong",
        description="Changes nothing. Exit code 0: all is well; 1: something has to be done.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per finding")
    add_settings(parser, ("listen", "home", "data_dir", "token_file"))
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print every finding as soon as it is there."""
    show = _show_json if arguments.json else _show
    problems = 0
    for finding in _examine(arguments):
        show(finding)
        problems += finding.level == "problem"
    return 1 if problems else 0


def _examine(arguments: argparse.Namespace) -> Iterator[Finding]:
    from flue_grpc.doctor import listening, places, system, tools

    configuration = configuration_of(arguments)
    yield from system.versions()
    yield from places.configuration_file(vars(arguments), os.environ)
    yield from places.store(configuration)
    yield from places.index(configuration, os.environ)
    yield from listening.addresses(configuration.settings)
    roots = tools.roots_of(configuration, os.environ)
    yield from tools.transcripts(roots)
    yield from system.file_watches(root.place.root for root in roots)
    yield from system.open_files()


def _show(finding: Finding) -> None:
    from flue_grpc.render.safe import for_line

    mark = _MARKS[finding.level]
    if is_coloured():
        mark = f"\x1b[{_COLOURS[finding.level]}m{mark}\x1b[0m"
    print(f"{mark} {finding.subject:<{_SUBJECT_WIDTH}} {for_line(finding.text)}")
    if finding.advice:
        print(f"{'':<{_SUBJECT_WIDTH + 6}}→ {for_line(finding.advice)}")


def _show_json(finding: Finding) -> None:
    import msgspec

    print(msgspec.json.encode(finding).decode())
