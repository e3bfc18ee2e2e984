"""``flue-grpc health``: asks a running server whether it serves; for probes."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from flue_grpc.commands.options import add_settings, configuration_of

_EXAMPLES: Final = """\
examples:
  flue-grpc health
  flue-grpc health flue.store.v1.Store --timeout 1
"""
_SECONDS: Final = 5.0
_NOT_SERVING: Final = 1
_NO_ANSWER: Final = 2


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "health",
        help="ask a running server whether it serves",
        description="Exit code 0: it serves; 1: it does not; 2: it did not answer.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "service",
        nargs="?",
        default="",
        help="flue.store.v1.Store or flue.agentindex.v1.AgentIndex (default: both)",
    )
    parser.add_argument(
        "--timeout", type=float, default=_SECONDS, metavar="SECONDS", help="wait this long"
    )
    add_settings(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Ask at the nearest address of the settings and print the answer."""
    settings = configuration_of(arguments).settings
    from flue_grpc.probe import nearest_address, probing, status_of

    address = nearest_address(settings)
    with probing(address, settings) as channel:
        status = status_of(channel, arguments.service, arguments.timeout)
    if status is None:
        print(f"flue-grpc: no answer from {address}", file=sys.stderr)
        return _NO_ANSWER
    print(status)
    return 0 if status == "SERVING" else _NOT_SERVING
