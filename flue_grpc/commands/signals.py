"""Signals that end a command in order, as Ctrl-C does."""

from __future__ import annotations

import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
_SIGNALLED: Final = 128  # a shell adds the signal's number to it


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block by SystemExit, so that what it made is put away.

    A second one ends the process at once. What is ignored, as by ``nohup``, stays
    ignored, and what the block has changed is its own.
    """
    # Only the main thread may change what a signal does.
    with suppress(ValueError):
        for number in _SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _exit)
    try:
        yield
    finally:
        _give_back()


def _exit(number: int, frame: FrameType | None) -> None:
    del frame
    _give_back()
    raise SystemExit(_SIGNALLED + number)


def _give_back() -> None:
    with suppress(ValueError):
        for number in _SIGNALS:
            if signal.getsignal(number) is _exit:
                signal.signal(number, signal.SIG_DFL)
