"""Lines for the sweep: the same as ``lines.read_lines``, in blocks and never copied.

A cold sweep goes over every byte of a home, and copying each line costs more than
reading the file does. Here lines are views into one buffer that is used again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from flue_grpc.limits import LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator


class LineBlock(NamedTuple):
    """Some whole lines; ``ends`` are the places of their newlines in ``view``.

    The first line begins at ``view[0]``, which is byte ``offset`` of the file, and each
    other one after the newline before it. Valid until the next block is asked for.
    """

    view: memoryview
    offset: int
    ends: list[int]


class LineBlocks:
    """Reads the bytes ``[start, end)`` of a file as blocks of terminated lines.

    ``start`` is taken for a line's start. Once iterated, ``offset`` is just after the
    last newline, ``end`` where the bytes ended, earlier than asked in a file that was
    cut meanwhile, and ``tail`` what lies between. A line above ``cap`` is stepped over,
    and an unterminated one leaves an empty tail: no more than that is ever held.
    Iterating raises OSError.
    """

    def __init__(
        self, fd: int, start: int, end: int, buffer: bytearray, cap: int = LINE_BYTES
    ) -> None:
        """Read from ``fd``, which stays open, into ``buffer``, or a larger one for long lines.

        ``buffer`` is at most ``cap`` + 1 bytes long, and nobody else's while iterating.
        """
        self.offset = start
        self.end = start
        self.tail = b""
        self._fd = fd
        self._limit = end
        self._buffer = buffer
        self._cap = cap

    def __iter__(self) -> Iterator[LineBlock]:
        buffer, held, skips = self._buffer, 0, False
        while count := self._read(buffer, held):
            used = held + count
            ends = _newlines(buffer, held, used)
            view = memoryview(buffer)
            first = 0
            if ends and skips:
                first = ends.pop(0) + 1
                self.offset, skips = self.end - used + first, False
                ends = [end - first for end in ends]
            if ends:
                yield LineBlock(view[first:], self.offset, ends)
                first += ends[-1] + 1
                self.offset = self.end - used + first
            held = 0 if skips else used - first
            if held > self._cap:
                held, skips = 0, True
            buffer = self._moved(buffer, view[first : first + held])
        if not skips:
            self.tail = bytes(memoryview(buffer)[:held])

    def _read(self, buffer: bytearray, held: int) -> int:
        size = min(len(buffer) - held, self._limit - self.end)
        if size <= 0:
            return 0
        count = os.preadv(self._fd, [memoryview(buffer)[held : held + size]], self.end)
        self.end += count
        return count

    def _moved(self, buffer: bytearray, rest: memoryview) -> bytearray:
        """Put what begins a line at the front of a buffer that has room for more of it."""
        if 2 * len(rest) <= len(self._buffer):
            buffer = self._buffer
        else:
            buffer = bytearray(min(max(2 * len(rest), len(buffer)), self._cap + 1))
        # Both may be one buffer: views, unlike the buffer, move what overlaps.
        memoryview(buffer)[: len(rest)] = rest
        return buffer


def _newlines(buffer: bytearray, start: int, end: int) -> list[int]:
    found = []
    find = buffer.find
    place = find(b"\n", start, end)
    while place >= 0:
        found.append(place)
        place = find(b"\n", place + 1, end)
    return found
