"""Finding the lines of a transcript that may match, without looking at each line.

The file goes by in windows that fit a processor's cache; where a matcher finds
something, the bounds of its line are looked up. Memory is one window and one line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.agentindex.lines import Line
from flue_grpc.limits import LINE_BYTES, SCAN_WINDOW_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flue_grpc.agentindex.escapes import KnownEscapes
    from flue_grpc.agentindex.matchers import Matcher
    from flue_grpc.agentindex.transcript_file import TranscriptFile

_OVERLAP: Final = 256  # longer than anything a prefilter looks for


class Scanned(msgspec.Struct, frozen=True):
    """The bytes before ``position`` were looked at; the scan could go on from ``resume``."""

    position: int
    resume: int


def candidate_lines(
    file: TranscriptFile, start: int, matcher: Matcher, known: KnownEscapes
) -> Iterator[Line | Scanned]:
    """Yield the lines from ``start`` in which ``matcher`` finds something, in order.

    From inside a line it begins at the next one. After each window comes how far the
    scan is. Lines above LINE_BYTES are left out. Raises as ``TranscriptFile``.
    """
    first = _line_at(file, start)
    scan = _Scan(file, matcher, known, first)
    while scan.load():
        yield from scan.lines()
        yield scan.advance()


def _line_at(file: TranscriptFile, start: int) -> int:
    if start == 0 or file.read(start - 1, 1) == b"\n":
        return start
    following = file.line_end(start)
    return file.size if following is None else following


class _Scan:
    """One pass over a file; ``line_start`` is the first line not looked at yet."""

    __slots__ = ("_base", "_file", "_known", "_matcher", "_window", "line_start")

    def __init__(
        self, file: TranscriptFile, matcher: Matcher, known: KnownEscapes, start: int
    ) -> None:
        self._file = file
        self._matcher = matcher
        self._known = known
        self._base = start
        self._window = b""
        self.line_start = start

    def load(self) -> bool:
        """Read the next window; False at the end."""
        self._window = self._file.read(self._base, SCAN_WINDOW_BYTES)
        if self._window:
            kinds = self._known.within(self._base + len(self._window))
            self._matcher.load(self._window, kinds)
        return bool(self._window)

    def lines(self) -> Iterator[Line]:
        """Yield the lines that have a match in this window."""
        at = self._matcher.next(max(0, self.line_start - self._base))
        while at >= 0:
            line = self._line_around(at)
            self.line_start = line.end
            if line.data:
                yield line
            following = line.end - self._base
            at = self._matcher.next(following) if following < len(self._window) else -1

    def advance(self) -> Scanned:
        """Move on to the next window, which overlaps this one inside a line."""
        end = self._base + len(self._window)
        newline = self._window.rfind(b"\n")
        self.line_start = max(self.line_start, self._base + newline + 1 if newline >= 0 else 0)
        is_at_end = end >= self._file.size
        self._base = max(end if is_at_end else end - _OVERLAP, self.line_start)
        # What is left of a line above the cap is stepped over all the same.
        resume = self.line_start if end - self.line_start <= LINE_BYTES else end
        return Scanned(max(end, self.line_start), resume)

    def _line_around(self, at: int) -> Line:
        window, base = self._window, self._base
        newline = window.rfind(b"\n", 0, at)
        offset = base + newline + 1 if newline >= 0 else self.line_start
        newline = window.find(b"\n", at)
        end = base + newline + 1 if newline >= 0 else self._file.line_end(base + len(window))
        terminated = end is not None
        end = self._file.size if end is None else end
        length = end - terminated - offset
        if length > LINE_BYTES:
            data = b""
        elif offset >= base and end <= base + len(window):
            data = window[offset - base : offset - base + length]
        else:
            data = self._file.read(offset, length)
        return Line(offset, data, end, terminated)
