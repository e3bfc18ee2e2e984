"""``flue-grpc config``: the settings in force, and where each came from."""

from __future__ import annotations

import argparse
from typing import Final

from flue_grpc.commands.options import add_settings, configuration_of

_EXAMPLES: Final = """\
examples:
  flue-grpc config
  flue-grpc config > flue-grpc.toml        serve --config flue-grpc.toml reads it
"""


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "config",
        help="print the settings in force and where each came from",
        description="Prints every setting as a line of a configuration file, with its origin.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_settings(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print one line per setting: TOML, and the origin as its comment."""
    configuration = configuration_of(arguments)
    lines = [
        (f"{name} = {_toml(getattr(configuration.settings, name))}", origin)
        for name, origin in configuration.origins.items()
    ]
    width = max(len(line) for line, _ in lines)
    for line, origin in lines:
        print(f"{line:<{width}}  # {origin}")
    return 0


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    import json

    return json.dumps("" if value is None else str(value), ensure_ascii=False)
