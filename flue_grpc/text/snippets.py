"""One line round a match, for a list of search hits (behaviour B1, B7).

A snippet has about 80 code points on each side of the match, white space folded, and no
escape sequences, control characters or markup. Its ranges say where the matches are.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.limits import SNIPPET_CODE_POINTS
from flue_grpc.text.casefold import find_folded, fold_text
from flue_grpc.text.clean import ANSI, CONTROL, strip_ansi
from flue_grpc.text.occurrences import best_window, occurrences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flue_grpc.text.query import Query

# What is removed or folded leaves less than was taken, so more is taken than shall be left.
_REACH: Final = 4  # times the context
_ESCAPED_REACH: Final = 64  # where escape sequences, such as links, take the place of text
# One control character at a time: the next one may begin an escape sequence.
_NOISE_ATOM: Final = rf"(?:{ANSI.pattern}|{CONTROL}|\s)"
# A lone space between words is what noise becomes, and by far the commonest: it stays.
_NOISE: Final = re.compile(rf"(?:\A|(?! (?!{_NOISE_ATOM}))){_NOISE_ATOM}++")

_ESCAPE_START: Final = re.compile("[\x1b\x9b]")


class Snippet(msgspec.Struct, frozen=True):
    """A line of text; ``ranges`` are half-open, in UTF-8 bytes of ``text``, sorted, disjoint.

    ``text_offset`` is the UTF-8 byte offset of the first range's match in the whole text.
    """

    text: str
    ranges: tuple[tuple[int, int], ...]
    text_offset: int


def literal_snippet(text: str, folded: str, context: int = SNIPPET_CODE_POINTS) -> Snippet | None:
    """Show the first place where ``text``, folded, holds ``folded``; None where nowhere.

    ``context`` is in code points, on each side of the match.
    """
    start = find_folded(text, folded)
    if start < 0:
        return None
    end = start + len(folded)
    spans = [(start, end)]
    behind = fold_text(text[end : end + _REACH * context])
    place = behind.find(folded)
    while place >= 0:
        spans.append((end + place, end + place + len(folded)))
        place = behind.find(folded, place + len(folded))
    return snippet(text, spans, context)


def ranked_snippet(text: str, query: Query, context: int = SNIPPET_CODE_POINTS) -> Snippet | None:
    """Show where the most terms of ``query`` stand close together; None where none does."""
    spans = best_window(occurrences(text, query.required), 2 * context)
    return snippet(text, spans, context) if spans else None


def opening_snippet(text: str, context: int = SNIPPET_CODE_POINTS) -> Snippet:
    """Show the beginning of ``text``, where what matches is nowhere in particular."""
    return snippet(text, [(0, 0)], 2 * context)


def snippet(text: str, spans: Sequence[tuple[int, int]], context: int) -> Snippet:
    """Show the first of ``spans`` with ``context`` code points on each side of it.

    ``spans`` are half-open, in code points of ``text``, sorted and disjoint, at least one.
    """
    first, end = spans[0]
    low = _left_edge(text, first, context)
    high = _right_edge(text, end, _REACH * context)
    line = _Line(text[low:high])
    shown = [line.span(a - low, b - low) for a, b in spans if b <= high]
    left = max(0, shown[0][0] - context)
    right = shown[0][1] + context
    left, right = line.trimmed(left, right)
    inside = [(a, b) for a, b in shown if left <= a < b <= right]
    cut = line.text[left:right]
    sizes = _sizes(cut, (at - left for bounds in inside for at in bounds))
    return Snippet(cut, tuple(zip(sizes, sizes, strict=True)), _size(text, first))


class _Line:
    """A text without noise, and where its places went."""

    def __init__(self, raw: str) -> None:
        parts: list[str] = []
        # Of each removed piece: its bounds in the raw text, and in the line.
        self._noise: list[tuple[int, int, int, int]] = []
        self._starts: list[int] = []
        at = size = 0
        for noise in _NOISE.finditer(raw):
            fill = " " if any(c.isspace() for c in strip_ansi(noise[0])) else ""
            parts += (raw[at : noise.start()], fill)
            size += noise.start() - at
            self._noise.append((noise.start(), noise.end(), size, size + len(fill)))
            self._starts.append(noise.start())
            at, size = noise.end(), size + len(fill)
        parts.append(raw[at:])
        self.text = "".join(parts)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where a span of the raw text is; empty when it is noise altogether."""
        first, last = self._place(start)[1], self._place(end)[0]
        return first, max(first, last)

    def trimmed(self, left: int, right: int) -> tuple[int, int]:
        """Leave out white space at both ends of a span of the line."""
        cut = self.text[left:right]
        left += len(cut) - len(cut.lstrip())
        return left, left + len(cut.strip())

    def _place(self, at: int) -> tuple[int, int]:
        """Return the places in the line just before and after what stood at ``at``."""
        number = bisect_right(self._starts, at)
        if not number:
            return at, at
        _, end, first, last = self._noise[number - 1]
        return (first, last) if at < end else (at - end + last, at - end + last)


def _left_edge(text: str, first: int, context: int) -> int:
    """Return where to begin so that about as much is left before ``first`` as shall be shown."""
    near = max(0, first - _REACH * context)
    low = _after_escape(text, near)
    if low > near or _ESCAPE_START.search(text, near, first):
        low = _after_escape(text, max(0, first - _ESCAPED_REACH * context))
    return min(first, low)


def _after_escape(text: str, low: int) -> int:
    """Move ``low`` behind an escape sequence that it would cut."""
    start = max(text.rfind("\x1b", 0, low), text.rfind("\x9b", 0, low))
    escape = ANSI.match(text, start) if start >= 0 else None
    return max(low, escape.end()) if escape else low


def _right_edge(text: str, end: int, reach: int) -> int:
    """Return where ``reach`` code points behind ``end`` end, and no escape sequence is cut."""
    at = end
    while (found := _ESCAPE_START.search(text, at, at + reach)) is not None:
        reach -= found.start() - at + 1
        escape = ANSI.match(text, found.start())
        at = escape.end() if escape else found.end()
    return min(len(text), at + max(0, reach))


def _sizes(text: str, ends: Iterable[int]) -> Iterator[int]:
    """Yield the UTF-8 sizes of the code points before each of ``ends``, which rise."""
    if text.isascii():
        yield from ends
        return
    before = size = 0
    for end in ends:
        size += len(text[before:end].encode())
        before = end
        yield size


def _size(text: str, end: int) -> int:
    """Return the UTF-8 size of the first ``end`` code points."""
    return end if text.isascii() else len(text[:end].encode())
