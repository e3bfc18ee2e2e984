"""The file that a command writes for its user: whole, or not there."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import contextmanager
from errno import ELOOP
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO


@contextmanager
def output_file(path: Path | None) -> Iterator[BinaryIO]:
    """Open ``path`` for a document, or standard output for None; raises OSError.

    A block that fails leaves what was there before. A new file is 0600, since it
    holds what was said; one that is replaced leaves its mode to the new one. A
    pipe or a device is written to as it is.
    """
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    elif path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
    else:
        with _replacing(_target(path)) as file:
            yield file


def _target(path: Path) -> Path:
    """Follow links; raises OSError where they lead in a circle."""
    try:
        return path.resolve()
    except RuntimeError as error:
        raise OSError(ELOOP, os.strerror(ELOOP), str(path)) from error


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    try:
        descriptor, unfinished = mkstemp(prefix=".flue-grpc-", dir=path.parent)
    except OSError as error:
        error.filename = path
        raise
    try:
        with os.fdopen(descriptor, "wb") as file:
            if path.exists():
                os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))
            yield file
        Path(unfinished).replace(path)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
