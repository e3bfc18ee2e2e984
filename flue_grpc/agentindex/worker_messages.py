"""What the server and its sweep worker tell each other: one JSON object a line."""

from __future__ import annotations

from typing import Literal

import msgspec


class WorkerRoot(msgspec.Struct, frozen=True):
    """A root to walk; paths are bytes, because file names need not be UTF-8."""

    tool: str
    kind: str
    path: bytes
    real: bytes


class WorkerOrder(msgspec.Struct, frozen=True):
    """What the worker is to do; it comes as the first line of its standard input.

    ``sweep`` brings the summaries up to date, ``follow`` what follows them. ``first_tid``
    is the lowest tid it may give out. A careful worker names each file before it reads
    it and commits after each; files in ``avoid`` are left alone.
    """

    index: bytes
    roots: tuple[WorkerRoot, ...]
    first_tid: int
    task: Literal["sweep", "follow"] = "sweep"
    is_careful: bool = False
    avoid: tuple[bytes, ...] = ()


class Progress(msgspec.Struct, frozen=True):
    """How far a sweep has come, in files and bytes of those that were dirty."""

    files: int = 0
    of_files: int = 0
    bytes: int = 0
    of_bytes: int = 0


class WorkerReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the worker has done since the last report.

    ``stored`` are tids that were committed, ``dropped`` the paths that are gone,
    ``reading`` the file that comes next. ``is_swept`` comes last in a whole sweep,
    ``is_damaged`` last where the index file is found damaged.
    """

    stored: tuple[int, ...] = ()
    dropped: tuple[bytes, ...] = ()
    progress: Progress | None = None
    reading: bytes | None = None
    is_swept: bool = False
    is_damaged: bool = False
