"""The standard streams, of which whoever starts a command may have closed some."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import Final, Literal

# Output that nobody gets is a failure, so its place is one that cannot be written.
_IN_PLACE: Final = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)


def prepare_streams() -> None:
    """Put something in the place of each closed stream, so that no file of ours gets there.

    Input is empty, output fails with OSError once it is flushed, complaints are
    dropped. What the encoding of an output has not, such as a title in another script,
    is escaped.
    """
    for number, flags in enumerate(_IN_PLACE):
        if not _is_open(number):
            # The lowest free number is taken, which is this one.
            os.open(os.devnull, flags)
            os.set_inheritable(number, True)  # noqa: FBT003 - it has no name for that
    sys.stdin = sys.stdin or _text(0, "r")
    sys.stdout = sys.stdout or _text(1, "w")
    sys.stderr = sys.stderr or _text(2, "w")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _text(number: int, mode: Literal["r", "w"]) -> TextIOWrapper:
    return os.fdopen(number, mode, encoding="utf-8", closefd=False)
