"""``flue-grpc health``: asks a running server whether it serves; for probes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from flue_grpc.commands.named import add_server, named
from flue_grpc.commands.options import add_settings, configuration_of
from flue_grpc.commands.output import complain
from flue_grpc.commands.running import answers, store_lock

if TYPE_CHECKING:
    from flue_grpc.client import Target
    from flue_grpc.config import Configuration
    from flue_grpc.listeners import Address

_EXAMPLES: Final = """\
examples:
  flue-grpc health
  flue-grpc health flue.store.v1.Store --timeout 1
  flue-grpc health --server 127.0.0.1:50051 --ca ca.crt
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
    add_server(parser.add_argument_group("which server"), "that of the settings")
    add_settings(parser, ("listen", "data_dir"))
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Ask the server that is named, or at the nearest address of the settings."""
    target = named(arguments)
    if target is not None:
        return _ask_named(target, arguments)
    configuration = configuration_of(arguments)
    from flue_grpc.probe import nearest_address, probing, status_of

    address = nearest_address(configuration.settings)
    with probing(address, configuration.settings) as channel:
        status = status_of(channel, arguments.service, arguments.timeout)
    if status is None:
        complain(f"no answer from {address}; {_advice(configuration, address)}")
        return _NO_ANSWER
    return _tell(status)


def _ask_named(target: Target, arguments: argparse.Namespace) -> int:
    from flue_grpc.client import CallError
    from flue_grpc.client.channel import open_channel
    from flue_grpc.commands.named import reach
    from flue_grpc.probe import status_of

    with open_channel(target) as channel:
        status = status_of(channel, arguments.service, arguments.timeout)
    if status is not None:
        return _tell(status)
    try:
        reach(target)
        complain(f"no answer from {target.address} within {arguments.timeout:g} s")
    except CallError as error:
        complain(error.message)
    return _NO_ANSWER


def _tell(status: str) -> int:
    print(status)
    return 0 if status == "SERVING" else _NOT_SERVING


def _advice(configuration: Configuration, address: Address) -> str:
    """Say what to do about a server that does not answer."""
    from flue_grpc.listeners import TcpAddress
    from flue_grpc.private_files import holder_of

    if isinstance(address, TcpAddress) and answers(str(address)):
        return f"if it speaks TLS, use --server {address} with --tls or --ca FILE"
    holder = holder_of(store_lock(configuration))
    if holder is not None and holder.addresses:
        first = holder.addresses[0]
        return f"{holder.process} serves this data directory: --server {first} asks it"
    return "`flue-grpc serve` starts one"
