"""What a follower knows of the unterminated line that lies behind its place.

A writer may take long over one long line. Of what it adds only the new bytes are looked
at; the line is read from its start again when it may be whole, and less and less often.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from flue_grpc import limits

if TYPE_CHECKING:
    from flue_grpc.agentindex.opening import OpenTranscript

_BLANKS: Final = b"\0 \t\r"
_LAST_BYTES: Final = 256  # more blanks than this do not end an object
_GROWTH: Final = 1.25


class UnfinishedLine:
    """The bytes from ``offset`` to the end of a file, which hold no newline."""

    __slots__ = ("_grown_at", "_offset", "_read_to", "_seen_to")

    def __init__(self, offset: int, size: int) -> None:
        """Begin with a file of ``size`` bytes that was read from ``offset`` on."""
        self._offset = offset
        self._read_to = self._seen_to = size
        self._grown_at = time.monotonic()

    def may_be_whole(self, opened: OpenTranscript) -> bool:
        """Say whether reading the line again may tell more; reads what is new alone.

        A line up to FOLLOW_TAIL_BYTES is always worth it. A longer one is when it has a
        newline, ends as an object and has grown by a quarter, or grows no more. A file
        that was cut is read again. Raises OSError.
        """
        size = opened.size
        if size - self._offset <= limits.FOLLOW_TAIL_BYTES or size < self._seen_to:
            return True
        if size == self._seen_to:
            is_quiet = time.monotonic() - self._grown_at >= limits.FOLLOW_QUIET_SECONDS
            return is_quiet and size > self._read_to
        self._grown_at = time.monotonic()
        if self._takes_in_newline(opened.fd, size):
            return True
        has_grown = size - self._offset >= _GROWTH * (self._read_to - self._offset)
        return has_grown and _ends_as_object(opened.fd, size)

    def _takes_in_newline(self, fd: int, size: int) -> bool:
        while self._seen_to < size:
            block = os.pread(fd, min(limits.READ_BYTES, size - self._seen_to), self._seen_to)
            if not block or b"\n" in block:
                return True
            self._seen_to += len(block)
        return False


def _ends_as_object(fd: int, size: int) -> bool:
    last = os.pread(fd, min(_LAST_BYTES, size), max(0, size - _LAST_BYTES))
    return last.rstrip(_BLANKS).endswith(b"}")
