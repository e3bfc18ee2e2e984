"""Long output goes through a pager on a terminal, as soon as its first lines are there."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Final

from flue_grpc.commands.output import make_console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

# Quit when all fits, keep colours, do not clear the screen.
_DEFAULT: Final = ("less", "-FRX")


@contextmanager
def unpaged() -> Iterator[Console]:
    """Yield a console that prints to standard output."""
    yield make_console()


@contextmanager
def paged() -> Iterator[Console]:
    """Yield a console that prints into ``$PAGER`` where standard output is a terminal.

    Leaving the pager ends the output and is no error.
    """
    command = _command() if sys.stdout.isatty() else None
    process = _start(command) if command else None
    if process is None or process.stdin is None:
        yield make_console()
        return
    with _ending_with_us(process):
        try:
            with _ending_with_us(process), suppress(BrokenPipeError):
                yield _console_into(process.stdin)
        finally:
            _finish(process)


@contextmanager
def _ending_with_us(process: subprocess.Popen[str]) -> Iterator[None]:
    """End the pager when we are told to end: it would wait for its user."""
    try:
        yield
    except SystemExit:
        process.terminate()
        raise


def _console_into(file: IO[str]) -> Console:
    from rich.console import Console

    from flue_grpc.render.console import guarded

    class PagerConsole(Console):
        """Tells that the pager was left, where rich would end the process."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    console = PagerConsole(
        file=file,
        force_terminal=True,
        width=make_console().width,
        markup=False,
        emoji=False,
        highlight=False,
    )
    return guarded(console)


def _command() -> list[str] | None:
    pager = os.environ.get("PAGER")
    if pager is None:
        return list(_DEFAULT)
    return shlex.split(pager) or None


def _start(command: list[str]) -> subprocess.Popen[str] | None:
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, text=True)  # noqa: S603 - the user's own pager
    except OSError:
        return None


def _finish(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()
    while True:
        try:
            process.wait()
        except KeyboardInterrupt:
            # Ctrl-C belongs to the pager while it runs.
            continue
        return
