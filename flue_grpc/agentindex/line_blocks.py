"""Lines for the sweep: the same as ``lines.read_lines``, in blocks and never copied.

A cold sweep goes over every byte of a home, and copying each line costs more than
reading the file does. Here lines are views into one buffer that is used again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from flue_grpc.agentindex.lines import BRACE, LineBlock, after_hollow, behind_hole
from flue_grpc.limits import LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator


class LineBlocks:
    """Reads the bytes ``[start, end)`` of a file as blocks of terminated lines.

    ``start`` is taken for a line's start. Once iterated, ``offset`` is just after the
    last newline, ``end`` where the bytes ended, earlier than asked in a file that was
    cut meanwhile, and ``tail`` what lies between. A line above ``cap`` is stepped over,
    and an unterminated one leaves an empty tail: neither is ever held. Hollow lines in a
    row may come as one. A block is valid until the next one is asked for. Iterating raises
    OSError.
    """

    def __init__(
        self, fd: int, start: int, end: int, buffer: bytearray, cap: int = LINE_BYTES
    ) -> None:
        """Read from ``fd``, which stays open, into ``buffer``; a longer line has its own.

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
        view, held = memoryview(self._buffer), 0
        while count := self._read(view[held:]):
            used = held + count
            ends = _newlines(self._buffer, held, used)
            rest = 0
            if ends:
                yield LineBlock(view, self.offset, ends)
                rest = ends[-1] + 1
                self.offset += rest
            held = used - rest
            if held == len(view):
                yield from self._long_line()
                held = 0
            elif rest:
                # The two may overlap: views, unlike the buffer, move such bytes rightly.
                view[:held] = view[rest:used]
        self.tail = self.tail or bytes(view[:held])

    def _long_line(self) -> Iterator[LineBlock]:
        """Take the line that fills the buffer, once it is known to be none too long."""
        is_terminated = self._skip_line()
        line_end = self.end
        length = line_end - self.offset - is_terminated
        data = self._again(length + is_terminated) if length <= self._cap else b""
        if self.end < line_end:
            self._limit = self.end  # cut meanwhile
        if not is_terminated or self.end < line_end:
            self.tail = bytes(data)
            return
        if data:
            yield LineBlock(memoryview(data), self.offset, [length])
        self.offset = line_end

    def _skip_line(self) -> bool:
        """Go on to just after the next newline; return whether there is one."""
        view = memoryview(self._buffer)
        while count := self._read(view):
            place = self._buffer.find(b"\n", 0, count)
            if place >= 0:
                self.end += place + 1 - count
                return True
            if self.end - self.offset > self._cap:
                self.end = behind_hole(self._fd, self.end, self._limit)
        return False

    def _again(self, size: int) -> bytearray:
        """Read the line from its start; shorter than ``size`` in a file that was cut."""
        data = bytearray(size)
        self.end = self.offset
        held = 0
        while held < size and (count := self._read(memoryview(data)[held:])):
            held += count
        del data[held:]
        return data

    def _read(self, view: memoryview) -> int:
        size = min(len(view), self._limit - self.end)
        if size <= 0:
            return 0
        count = os.preadv(self._fd, [view[:size]], self.end)
        self.end += count
        return count


def _newlines(buffer: bytearray, start: int, end: int) -> list[int]:
    """Find the newlines; of hollow lines in a row the last one alone, as if they were one."""
    found = []
    find = buffer.find
    last = end - 1
    place = find(b"\n", start, end)
    while place >= 0:
        found.append(place)
        if place < last and buffer[place + 1] != BRACE:
            behind = after_hollow(buffer, place + 1, end)
            if behind > place + 1:
                place = behind - 1
                found.append(place)
        place = find(b"\n", place + 1, end)
    return found
