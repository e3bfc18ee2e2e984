"""Reaching a server: the one that runs, or one in this process when there is none."""

from __future__ import annotations

import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flue_grpc.commands.named import add_server, named, reach
from flue_grpc.commands.options import configuration_of
from flue_grpc.commands.output import CANNOT, NOTHING, complain
from flue_grpc.commands.running import configured, index_lock, owner, store_lock
from flue_grpc.errors import AlreadyRunningError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from flue_grpc.agentindex.index import AgentIndex
    from flue_grpc.client import CallError, Client, RetryPolicy, Target
    from flue_grpc.client.retry import OnBreak
    from flue_grpc.config import Configuration
    from flue_grpc.server import Server

_UNIX: Final = "unix:"
_OWNER_SECONDS: Final = 5.0  # another command may own the index for that long
_SETTLE_SECONDS: Final = 0.5  # a sweep that finds little takes some milliseconds
_PAUSE: Final = 0.02


@dataclass(frozen=True, slots=True)
class _Need:
    """What a command needs of a server: its settings in this process, whom to wait for, its lock.

    ``adapt`` makes settings of a temporary directory; ``still_runs`` says whether
    the index is not ready yet; ``lock`` names the file that the owner holds.
    """

    adapt: Callable[[Configuration, Path], Configuration]
    still_runs: Callable[[AgentIndex], bool]
    lock: Callable[[Configuration], Path]


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say which server, and whose files."""
    group = parser.add_argument_group("which server")
    add_server(group, "the one that runs, else one in this process")
    group.add_argument(
        "--token-file", dest="bearer", type=Path, metavar="FILE", help="file with a bearer token"
    )
    group.add_argument("--home", metavar="DIR", help="home whose transcripts are read")
    group.add_argument("--data-dir", metavar="DIR", help="directory of the Store")
    group.add_argument("--config", metavar="FILE", help="configuration file (TOML)")


@contextmanager
def transcripts(
    arguments: argparse.Namespace,
    retry: RetryPolicy | None = None,
    on_break: OnBreak | None = None,
) -> Iterator[Client]:
    """Connect for what concerns transcripts; the Store is not touched.

    ``retry`` and ``on_break`` are those of a Client.
    """
    need = _Need(_without_store, _sweep_runs, index_lock)
    with _connected(arguments, need) as target, _client(target, retry, on_break) as client:
        _settle(client)
        yield client


@contextmanager
def ranked_transcripts(arguments: argparse.Namespace) -> Iterator[Client]:
    """Connect for a search by rank, whose index is filled after the transcripts are read."""
    need = _Need(_without_store, _ranking_runs, index_lock)
    with _connected(arguments, need) as target, _client(target) as client:
        _settle(client)
        yield client


@contextmanager
def store(arguments: argparse.Namespace) -> Iterator[Client]:
    """Connect for what concerns the Store."""
    need = _Need(_with_store, _nothing_runs, store_lock)
    with _connected(arguments, need) as target, _client(target) as client:
        yield client


def _client(
    target: Target, retry: RetryPolicy | None = None, on_break: OnBreak | None = None
) -> Client:
    from flue_grpc.client import Client, RetryPolicy
    from flue_grpc.client.retry import in_silence

    return Client(target, retry=retry or RetryPolicy(), on_break=on_break or in_silence)


def reporting(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Let a command fail in words: exit code 1 for what is not there, 2 for all else."""

    def reported(arguments: argparse.Namespace) -> int:
        from flue_grpc.client import CallError

        try:
            return run(arguments)
        except CallError as error:
            return _report(error)

    return reported


def target_of(
    arguments: argparse.Namespace, lock: Callable[[Configuration], Path]
) -> Target | None:
    """Find the server that was named, or the one that runs; None when there is none.

    That is one at a configured address, or whoever holds ``lock``. Raises ConfigError
    when what was named cannot be used, and AlreadyRunningError as ``owner`` does.
    """
    from flue_grpc.client.target import read_token

    token = read_token(arguments.bearer) if arguments.server and arguments.bearer else ""
    target = named(arguments, token)
    return target or configured(arguments) or owner(arguments, lock)


@contextmanager
def _connected(arguments: argparse.Namespace, need: _Need) -> Iterator[Target]:
    target = _first_choice(arguments, need)
    if target is not None:
        if arguments.server:
            reach(target)
        yield target
        return
    with tempfile.TemporaryDirectory(prefix="flue-grpc-") as directory:
        configuration = need.adapt(configuration_of(arguments), Path(directory))
        with _in_process(arguments, configuration, Path(directory), need) as target:
            yield target


def _first_choice(arguments: argparse.Namespace, need: _Need) -> Target | None:
    """Prefer a server that runs, unless it may have another home than the one named."""
    if arguments.home and not arguments.data_dir and not arguments.server:
        return owner(arguments, need.lock)
    return target_of(arguments, need.lock)


@contextmanager
def _in_process(
    arguments: argparse.Namespace,
    configuration: Configuration,
    directory: Path,
    need: _Need,
) -> Iterator[Target]:
    """Serve from this process, or find the server that owns the files after all."""
    from flue_grpc.client import Target
    from flue_grpc.client.target import socket_target

    path = directory / "flue.sock"
    settings = replace(configuration.settings, listen=(f"{_UNIX}{path}",))
    server = _start(arguments, replace(configuration, settings=settings), need)
    if isinstance(server, Target):
        yield server
        return
    try:
        _wait_while(need.still_runs, server.services.index)
        yield socket_target(path)
    finally:
        server.stop()


def _without_store(configuration: Configuration, directory: Path) -> Configuration:
    if configuration.is_explicit("data_dir"):
        return configuration
    settings = replace(configuration.settings, data_dir=directory / "data")
    return replace(configuration, settings=settings)


def _with_store(configuration: Configuration, directory: Path) -> Configuration:
    del directory
    return configuration


def _start(
    arguments: argparse.Namespace, configuration: Configuration, need: _Need
) -> Server | Target:
    """Start a server, or return the one that runs; another command may own the files for a while.

    Raises AlreadyRunningError when they stay taken and nobody answers.
    """
    from flue_grpc.server import Server

    end = time.monotonic() + _OWNER_SECONDS
    while True:
        try:
            server = Server(configuration)
        except AlreadyRunningError:
            running = configured(arguments) or owner(arguments, need.lock)
            if running is not None:
                return running
            if time.monotonic() > end:
                raise
            time.sleep(_PAUSE)
        else:
            server.start()
            return server


def _wait_while(still_runs: Callable[[AgentIndex], bool], index: AgentIndex) -> None:
    """Wait until an index of our own knows everything, and show how far it has come."""
    if not still_runs(index):
        return
    from flue_grpc.commands.progress import bar

    with bar("reading transcripts") as show:
        while still_runs(index):
            show(index.progress.bytes, index.progress.of_bytes)
            time.sleep(_PAUSE)


def _settle(client: Client) -> None:
    """Let a sweep that is over in a moment end first: what is listed then is complete."""
    end = time.monotonic() + _SETTLE_SECONDS
    while _is_building(client) and time.monotonic() < end:
        time.sleep(_PAUSE)


def _is_building(client: Client) -> bool:
    listed = client.agentindex.snapshot(limit=1)
    for _ in listed:
        pass
    return listed.last is not None and listed.last.building


def _nothing_runs(index: AgentIndex) -> bool:
    del index
    return False


def _sweep_runs(index: AgentIndex) -> bool:
    return index.building


def _ranking_runs(index: AgentIndex) -> bool:
    return index.building or index.lags


def _report(error: CallError) -> int:
    import grpc

    complain(f"{error.reason}: {error.message}" if error.reason else error.message)
    if error.code is grpc.StatusCode.UNAUTHENTICATED:
        complain("--token-file names a file with a token that the server knows")
    return NOTHING if error.code is grpc.StatusCode.NOT_FOUND else CANNOT
