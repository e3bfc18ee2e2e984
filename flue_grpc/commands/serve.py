"""``flue-grpc serve``: runs the server until it is told to stop."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Final

from flue_grpc.commands.options import add_settings, configuration_of
from flue_grpc.errors import AlreadyRunningError

if TYPE_CHECKING:
    from types import FrameType

    from flue_grpc.listeners import Address
    from flue_grpc.server import Server
    from flue_grpc.settings import Settings

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PROGRESS_SECONDS: Final = 0.2
_EXAMPLES: Final = """\
examples:
  flue-grpc serve                          on a Unix socket, for you alone
  flue-grpc serve --listen 127.0.0.1:7443  on TCP, for whoever has a token
  flue-grpc serve --home /srv/agent --data-dir /srv/flue
"""


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "serve",
        help="run the server",
        description="Serves the Store and the AgentIndex until SIGTERM or Ctrl-C; "
        "a second one ends it at once.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_settings(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal comes; 0 when everything was closed in order."""
    configuration = configuration_of(arguments)
    from flue_grpc.logs import start_logging

    start_logging(configuration.settings, sys.stderr)
    stopping = _stop_on_signals()
    from flue_grpc.large_blocks import give_large_blocks_back
    from flue_grpc.server import Server

    try:
        server = Server(configuration)
    except AlreadyRunningError as error:
        raise AlreadyRunningError(f"{error}, or choose another --data-dir and --listen") from error
    try:
        if not stopping.is_set():
            server.start()
            server.announce()
            _say(server.addresses, configuration.settings)
            give_large_blocks_back()
            _show_first_sweep(server, stopping)
        stopping.wait()
    finally:
        server.stop()
    return 0


def _stop_on_signals() -> threading.Event:
    """Set the event at the first signal; end the process at the second.

    Python runs its handlers on the main thread alone, which a signal that the kernel
    gives to another thread does not wake: so a thread of ours hears of them by a pipe.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    stopping = threading.Event()

    def listen() -> None:
        os.read(reading, 1)
        stopping.set()
        os._exit(128 + os.read(reading, 1)[0])

    threading.Thread(target=listen, name="flue-signals", daemon=True).start()
    for number in _SIGNALS:
        # What was ignored at the start, as by nohup, stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _only_wake)
    signal.set_wakeup_fd(writing)
    return stopping


def _only_wake(number: int, frame: FrameType | None) -> None:
    """Leave everything to the thread that reads the pipe."""
    del number, frame


def _say(addresses: tuple[Address, ...], settings: Settings) -> None:
    """Print where to connect, and lines to paste."""
    for address in addresses:
        print(f"flue-grpc listens on {address}")
    from flue_grpc.commands.paste import lines_to_paste

    for line in lines_to_paste(addresses[0], settings):
        print(f"  {line}")
    sys.stdout.flush()


def _show_first_sweep(server: Server, stopping: threading.Event) -> None:
    """Show how far the first sweep is, while a person looks on."""
    if not sys.stderr.isatty():
        return
    index = server.services.index
    while index.building and not stopping.wait(_PROGRESS_SECONDS):
        progress = index.progress
        if progress.of_bytes:
            share = 100 * progress.bytes // progress.of_bytes
            line = f"  reading transcripts: {progress.files} of {progress.of_files}, {share} %"
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)
    print("\r\x1b[K", end="", file=sys.stderr, flush=True)
