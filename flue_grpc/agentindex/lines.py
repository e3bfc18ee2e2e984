"""Physical lines: bytes between two newlines, each with its byte offset (behaviour B3).

Lines are split on the byte 0x0A alone, never on what text modes call a line end, because
an offset is an anchor that clients keep (formats §1.1). A line is hollow when no object
begins in it: whatever else it holds, it says nothing, and a file may have millions.
"""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import msgspec

from flue_grpc.limits import LINE_BYTES, READ_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

BRACE: Final = ord("{")
NEWLINE: Final = ord("\n")
# Not on every system.
_SEEK_DATA: Final[int | None] = getattr(os, "SEEK_DATA", None)
_HOLLOW: Final = re.compile(rb"(?:[^{\n]*+\n)*+")


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line: ``data`` without its newline, ``end`` just after the newline.

    A line above LINE_BYTES is stepped over: its ``data`` is empty. Only the last line
    can be unterminated; its ``end`` is where the bytes end.
    """

    offset: int
    data: bytes
    end: int
    terminated: bool


class LineBlock(NamedTuple):
    """Some whole lines in one piece of memory; ``ends`` are the places behind them.

    The first line begins at ``view[0]``, which is byte ``offset`` of the file, and each
    other one behind the newline that ends the one before it. Hollow lines in a row may
    count as one.
    """

    view: memoryview
    offset: int
    ends: Sequence[int]

    @classmethod
    def of_line(cls, data: bytes | memoryview, offset: int) -> Self:
        """Make a block of one line without its newline."""
        return cls(memoryview(data), offset, (len(data),))


def after_hollow(data: bytes | bytearray, start: int, end: int | None = None) -> int:
    """Return the place behind the hollow lines that follow each other from ``start`` on.

    ``start`` is a line's start; only terminated lines before ``end`` count.
    """
    match = _HOLLOW.match(data, start, len(data) if end is None else end)
    return match.end() if match else start


def behind_hole(fd: int, position: int, end: int) -> int:
    """Return where data begins at or behind ``position``, at most ``end``.

    A hole of a sparse file reads as NULs: no line ends in it. Raises OSError.
    """
    if position >= end or _SEEK_DATA is None:
        return position
    try:
        return min(os.lseek(fd, position, _SEEK_DATA), end)
    except OSError as error:
        if error.errno != errno.ENXIO:
            return position  # not every file system tells
        # A hole up to the end, unless the file was cut.
        return max(position, min(os.fstat(fd).st_size, end))


def read_lines(fd: int, start: int, end: int, cap: int = LINE_BYTES) -> Iterator[Line]:
    """Yield the lines in the bytes ``[start, end)`` of a file, read as they are needed.

    ``start`` is taken for a line's start. Holds at most ``cap`` bytes of a line and one
    block. A file that was cut below ``end`` meanwhile ends early. Raises OSError.
    """

    def skip(position: int) -> int:
        return behind_hole(fd, position, end)

    return _lines(lambda position, size: os.pread(fd, size, position), skip, start, end, cap)


def split_lines(data: bytes, offset: int, cap: int = LINE_BYTES) -> Iterator[Line]:
    """Yield the lines of bytes that were read from ``offset`` of a file."""
    blocks = {offset: data}
    end = offset + len(data)
    return _lines(
        lambda position, _: blocks.get(position, b""), lambda position: position, offset, end, cap
    )


def _lines(
    read: Callable[[int, int], bytes], skip: Callable[[int], int], start: int, end: int, cap: int
) -> Iterator[Line]:
    head = _Head(start, cap)
    position = start
    while position < end:
        block = read(position, min(READ_BYTES, end - position))
        if not block:
            break
        position += len(block)
        pieces = block.split(b"\n")
        last = pieces.pop()
        if pieces:
            offset = position - len(block) + len(pieces[0]) + 1
            yield Line(head.offset, head.join(pieces[0]), offset, terminated=True)
            for data in pieces[1:]:
                line_end = offset + len(data) + 1
                yield Line(offset, data if len(data) <= cap else b"", line_end, terminated=True)
                offset = line_end
            head = _Head(offset, cap)
        head.add(last)
        if head.size > cap:
            behind = skip(position)
            head.size += behind - position
            position = behind
    if head.size:
        yield Line(head.offset, head.join(b""), head.offset + head.size, terminated=False)


class _Head:
    """The beginning of a line that goes on in the next block."""

    __slots__ = ("_cap", "_parts", "offset", "size")

    def __init__(self, offset: int, cap: int) -> None:
        self.offset = offset
        self.size = 0
        self._cap = cap
        self._parts: list[bytes] = []

    def add(self, part: bytes) -> None:
        self.size += len(part)
        if self.size > self._cap:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def join(self, part: bytes) -> bytes:
        """Return the whole line, or nothing when it is above the cap."""
        if not self.size:
            return part if len(part) <= self._cap else b""
        if self.size + len(part) > self._cap:
            return b""
        return b"".join((*self._parts, part))
