"""Noticing that a file changed, for the price of one ``stat``."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pathlib import Path


class FileSignature(msgspec.Struct, frozen=True):
    """What differs between two contents of one path, unless the clock stood still."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


def file_signature(path: Path) -> FileSignature | None:
    """Look at ``path``, through symlinks; None when nothing can be seen there."""
    with suppress(OSError):
        status = path.stat()
        return FileSignature(
            status.st_dev,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
        )
    return None
