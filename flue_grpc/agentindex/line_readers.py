"""Stepping through a transcript line by line, onward or back, with bounded reads.

A line that is wanted only if it is short enough is not read further than that; one
above LINE_BYTES is stepped over with empty data (behaviour B1). Hollow lines in a row,
as far as they are at hand, come as one line with empty data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flue_grpc.agentindex.lines import BRACE, NEWLINE, Line, after_hollow
from flue_grpc.agentindex.transcript_file import longer
from flue_grpc.limits import FIRST_READ_BYTES, LINE_BYTES

if TYPE_CHECKING:
    from flue_grpc.agentindex.transcript_file import TranscriptFile


class OnwardReader:
    """Lines from ``position``, a line's start, to the end of the file."""

    __slots__ = ("_base", "_block", "_file", "_most_hollow", "position")

    def __init__(
        self, file: TranscriptFile, position: int, most_hollow: int = FIRST_READ_BYTES
    ) -> None:
        """Begin at ``position``; it moves with each line.

        At most ``most_hollow`` bytes of hollow lines come as one.
        """
        self.position = position
        self._file = file
        self._most_hollow = most_hollow
        self._block = b""
        self._base = position

    @property
    def is_at_end(self) -> bool:
        """Whether no byte is left."""
        return self.position >= self._file.size

    def next(self, allow: int) -> Line | None:
        """Return the next line, None when it takes more than ``allow`` bytes or none is left."""
        offset = self.position
        behind = self._after_hollow(offset, min(allow, self._most_hollow))
        if behind > offset:
            self.position = behind
            return Line(offset, b"", behind, terminated=True)
        found = self._find_end(offset, allow)
        if found is None or found[0] - offset > allow:
            return None
        end, terminated = found
        self.position = end
        return Line(offset, self._data(offset, end - terminated), end, terminated)

    def _after_hollow(self, offset: int, most: int) -> int:
        block, start = self._block, offset - self._base
        if not 0 <= start < len(block) or block[start] == BRACE:
            return offset
        return self._base + after_hollow(block, start, min(len(block), start + most))

    def _find_end(self, offset: int, allow: int) -> tuple[int, bool] | None:
        """Return (end, whether a newline ends it); None as soon as it cannot fit."""
        searched, step = max(offset, self._base), FIRST_READ_BYTES
        while (newline := self._block.find(b"\n", searched - self._base)) < 0:
            searched = self._base + len(self._block)
            if searched - offset > allow:
                return None
            block = self._file.read(searched, step)
            if not block:
                return (searched, False) if searched > offset else None
            self._block, self._base, step = block, searched, longer(step)
        return self._base + newline + 1, True

    def _data(self, offset: int, end: int) -> bytes:
        if end - offset > LINE_BYTES:
            return b""
        if offset >= self._base:
            return self._block[offset - self._base : end - self._base]
        return self._file.read(offset, end - offset)


class BackwardReader:
    """Lines before ``position``, the last one first.

    ``position`` is a line's start, or a place inside a line: then the line's part
    before it comes first, as an unterminated line.
    """

    __slots__ = ("_base", "_block", "_file", "_most_hollow", "position")

    def __init__(
        self, file: TranscriptFile, position: int, most_hollow: int = FIRST_READ_BYTES
    ) -> None:
        """Begin at ``position``; it moves with each line.

        At most ``most_hollow`` bytes of hollow lines come as one.
        """
        self.position = position
        self._file = file
        self._most_hollow = most_hollow
        self._block = b""
        self._base = position

    @property
    def is_at_start(self) -> bool:
        """Whether no byte is left."""
        return self.position <= 0

    def next(self, allow: int) -> Line | None:
        """Return the line before, None when it takes more than ``allow`` bytes or none is left."""
        end = self.position
        start = self._start_of_hollow(end, min(allow, self._most_hollow))
        if start < end:
            self.position = start
            return Line(start, b"", end, terminated=True)
        offset = self._find_start(end, allow)
        if offset is None or not 0 < end - offset <= allow:
            return None
        self.position = offset
        data = self._data(offset, end)
        return Line(offset, data.removesuffix(b"\n"), end, data.endswith(b"\n"))

    def _start_of_hollow(self, end: int, most: int) -> int:
        block, stop = self._block, end - self._base
        if most <= 0 or not 0 < stop <= len(block) or block[stop - 1] != NEWLINE:
            return end
        # The newline before the first of them may be the byte before the `most`.
        floor = max(0, stop - most - 1)
        brace = block.rfind(b"{", floor, stop)
        if brace < 0 and self._base == 0 and stop <= most:
            return 0
        return self._base + block.find(b"\n", max(brace, floor), stop) + 1

    def _find_start(self, end: int, allow: int) -> int | None:
        # The byte before `end` is the line's own newline, or its last byte.
        searched, step = end - 1, FIRST_READ_BYTES
        while (newline := self._block.rfind(b"\n", 0, max(0, searched - self._base))) < 0:
            searched = min(searched, self._base)
            if searched <= 0:
                return 0
            if end - searched > allow:
                return None
            begin = max(0, searched - step)
            self._block, self._base = self._file.read(begin, searched - begin), begin
            step = longer(step)
        return self._base + newline + 1

    def _data(self, offset: int, end: int) -> bytes:
        if end - offset > LINE_BYTES + 1:
            return b""
        if end <= self._base + len(self._block):
            return self._block[offset - self._base : end - self._base]
        return self._file.read(offset, end - offset)
