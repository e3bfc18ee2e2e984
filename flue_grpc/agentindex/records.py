"""What the index keeps of one transcript file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.agentindex.adapters.base import Source
from flue_grpc.agentindex.values import Summary

if TYPE_CHECKING:
    import os

_EARLIEST_NS: Final = -(2**63)  # 1677-09-21, and 2262-04-11: what the index file can hold
_LATEST_NS: Final = 2**63 - 1


class FileKey(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What tells an unchanged file without opening it (behaviour B4).

    ``size`` is in bytes, -1 when the file changed under the reader, so that no
    file equals it; ``mode`` is st_mode, whose change may end the right to read.
    """

    size: int
    mtime_ns: int
    inode: int
    mode: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileKey:
        """Return the key of a file as it is; its time is ``mtime_ns``."""
        return cls(status.st_size, mtime_ns(status), status.st_ino, status.st_mode)


def mtime_ns(status: os.stat_result) -> int:
    """Return when a file was changed, in nanoseconds since 1970, within 64 bits.

    A file system may hold any second of 64 bits, which is more than 64 bits of nanoseconds.
    """
    return max(_EARLIEST_NS, min(status.st_mtime_ns, _LATEST_NS))


class Place(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The root of one adapter that a file was found below; ``root`` has no symlinks.

    A file that was found by a link to it has its own root here, and ``is_linked``.
    """

    tool: str
    kind: str
    root: str
    is_linked: bool = False


class Trail(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far a transcript's checkpoints are laid: the last one, and how many.

    ``exact_until`` is None while each change of the model has its own.
    """

    offset: int = 0
    model: str = ""
    count: int = 0
    exact_until: int | None = None


class Standing(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the parser stands in a file: after the newline before ``offset``.

    ``anchor`` is a digest of the first bytes and of those before ``offset``.
    ``full_blocks`` counts the usage blocks that take no more lines.
    """

    offset: int
    anchor: bytes
    mirror: bool
    trail: Trail
    full_blocks: int


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """All of a transcript but its parser state and its tables.

    ``summary`` is None when the file is no transcript after all: it is kept, so that
    it is not read again. Its ``subagent_tokens`` are zero here.
    """

    source: Source
    key: FileKey
    standing: Standing
    summary: Summary | None


class Entry(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One transcript file in the index.

    ``tid`` is never given to another file, nor to the same one rewritten: what is
    stored under it only grows. ``path`` is absolute and free of symbolic links.
    ``changed`` is a time in microseconds, unique and rising over all changes.
    """

    tid: int
    path: str
    place: Place
    record: Record
    changed: int
