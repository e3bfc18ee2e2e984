"""Reading an open transcript by position, while its owner may change it (behaviour B3)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from flue_grpc.agentindex.lines import behind_hole
from flue_grpc.limits import FIRST_READ_BYTES, READ_BYTES

if TYPE_CHECKING:
    from flue_grpc.agentindex.opening import OpenTranscript
    from flue_grpc.cancel import Cancel


class TranscriptFile:
    """The bytes that a transcript had when it was opened.

    ``size`` is where they end; it falls when a read finds the file cut. Every method
    asks ``cancel`` at each read, and raises OSError when the file cannot be read.
    """

    __slots__ = ("_cancel", "_fd", "bytes_read", "size")

    def __init__(self, opened: OpenTranscript, cancel: Cancel) -> None:
        """Read what ``opened`` holds; the caller closes it."""
        self.size = opened.size
        self.bytes_read = 0
        self._fd = opened.fd
        self._cancel = cancel

    def check(self) -> None:
        """Raise what ``cancel`` raises: for work on what was read, which asks at each line."""
        self._cancel.check()

    def read(self, offset: int, size: int) -> bytes:
        """Return the bytes from ``offset``, at most ``size``, fewer only at the end."""
        self._cancel.check()
        wanted = min(size, self.size - offset)
        if wanted <= 0:
            return b""
        data = self._pread(offset, wanted)
        self.bytes_read += len(data)
        if len(data) < wanted:
            self.size = offset + len(data)
        return data

    def line_start(self, offset: int, floor: int = 0) -> int:
        """Return where the line begins that holds the byte before ``offset``.

        That byte itself is taken for no newline. A line that begins before ``floor`` is
        not followed further; what is returned then is not above ``floor``.
        """
        end, step = offset - 1, FIRST_READ_BYTES
        while end > max(floor, 0):
            begin = max(0, end - step)
            if behind_hole(self._fd, begin, end) == end:
                self._cancel.check()
                end, step = begin, longer(step)
                continue
            newline = self.read(begin, end - begin).rfind(b"\n")
            if newline >= 0:
                return begin + newline + 1
            end, step = begin, longer(step)
        return max(end, 0)

    def line_end(self, offset: int) -> int | None:
        """Return the place after the next newline at or after ``offset``, None if none is left."""
        step = FIRST_READ_BYTES
        while block := self.read(offset, step):
            newline = block.find(b"\n")
            if newline >= 0:
                return offset + newline + 1
            offset, step = offset + len(block), longer(step)
            offset = behind_hole(self._fd, offset, self.size)
        return None

    def _pread(self, offset: int, size: int) -> bytes:
        data = os.pread(self._fd, size, offset)
        # Some file systems give less than there is; none at all is the end.
        while len(data) < size:
            more = os.pread(self._fd, size - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data


def longer(step: int) -> int:
    """Return the size of the read after one of ``step`` bytes that did not suffice."""
    return min(step * 4, READ_BYTES)
