"""Finding the server that runs: where it was configured to listen, or where its lock says."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Final

from flue_grpc.commands.options import configuration_of
from flue_grpc.errors import AlreadyRunningError, ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from pathlib import Path

    from flue_grpc.client import Target
    from flue_grpc.config import Configuration
    from flue_grpc.settings import Settings

_UNIX: Final = "unix:"
_PLAINTEXT_SECONDS: Final = 2.0


def store_lock(configuration: Configuration) -> Path:
    """Name the lock of whoever owns the Store."""
    from flue_grpc import services

    return services.store_lock(configuration)


def index_lock(configuration: Configuration) -> Path:
    """Name the lock of whoever owns the index of this home's transcripts."""
    from flue_grpc import services

    return services.index_lock(configuration, os.environ)


def configured(arguments: argparse.Namespace) -> Target | None:
    """Find a server at an address of the settings; only plaintext is tried.

    Any user may listen at a port: it gets a token only where a lock of ours says that
    it is our server's.
    """
    from flue_grpc.client.target import Target

    configuration = configuration_of(arguments)
    settings = configuration.settings
    for address in settings.listen:
        if address.startswith(_UNIX):
            if _is_our_socket(address) and answers(address):
                return Target(address=address)
        elif _is_our_port(address, configuration) and answers(address):
            return Target(address=address, token=_token(arguments, settings))
    return None


def _is_our_port(address: str, configuration: Configuration) -> bool:
    """Say whether a server that holds a lock of these settings has the port, in plaintext."""
    from flue_grpc.private_files import holder_of

    if configuration.settings.tls_cert is not None or not _is_of_this_machine(address):
        return False
    holders = (holder_of(lock(configuration)) for lock in (store_lock, index_lock))
    return any(address in holder.addresses for holder in holders if holder)


def _is_our_socket(address: str) -> bool:
    """Say whether no other user can answer at ``unix:PATH``."""
    from flue_grpc.listeners import UnixAddress, parse_address
    from flue_grpc.private_files import refuse_strange_socket

    try:
        parsed = parse_address(address)
        if isinstance(parsed, UnixAddress):
            refuse_strange_socket(parsed.path)
    except ConfigError:
        return False
    return True


def owner(arguments: argparse.Namespace, lock: Callable[[Configuration], Path]) -> Target | None:
    """Find the server that holds a lock; None when nobody holds it, or not for long.

    Raises AlreadyRunningError for one that can be reached only in another way.
    """
    from flue_grpc.private_files import holder_of

    configuration = configuration_of(arguments)
    holder = holder_of(lock(configuration))
    if holder is None:
        return None
    alive = [address for address in holder.addresses if answers(address)]
    for address in sorted(alive, key=lambda each: not each.startswith(_UNIX)):
        target = _in_plaintext(address, arguments, configuration.settings)
        if target is not None:
            return target
    if not alive:
        return None
    raise AlreadyRunningError(
        f"a server runs at {alive[0]} ({holder.process}); use --server {alive[0]} "
        "with --ca FILE, and with --token-file FILE, or --cert FILE and --key FILE"
    )


def answers(address: str) -> bool:
    """Say whether anything takes connections at ``unix:PATH`` or ``HOST:PORT``."""
    from flue_grpc.listeners import UnixAddress, parse_address

    try:
        parsed = parse_address(address)
        if isinstance(parsed, UnixAddress):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(parsed.path))
        else:
            socket.create_connection((parsed.host, parsed.port), _PLAINTEXT_SECONDS).close()
    except (OSError, ConfigError):
        return False
    return True


def _in_plaintext(address: str, arguments: argparse.Namespace, settings: Settings) -> Target | None:
    from flue_grpc.client import CallError, Client, RetryPolicy
    from flue_grpc.client.target import Target

    if address.startswith(_UNIX):
        return Target(address=address) if _is_our_socket(address) else None
    token = _token(arguments, settings) if _is_of_this_machine(address) else ""
    target = Target(address=address, token=token)
    with Client(target, retry=RetryPolicy(attempts=1)) as client:
        try:
            client.is_serving(timeout=_PLAINTEXT_SECONDS)
        except CallError:
            return None
    return target


def _token(arguments: argparse.Namespace, settings: Settings) -> str:
    from flue_grpc.client.target import read_token

    file = arguments.bearer or settings.token_path
    return read_token(file) if file.is_file() else ""


def _is_of_this_machine(address: str) -> bool:
    from flue_grpc.listeners import TcpAddress, parse_address
    from flue_grpc.security.addresses import is_loopback

    parsed = parse_address(address)
    return isinstance(parsed, TcpAddress) and is_loopback(parsed.host)
