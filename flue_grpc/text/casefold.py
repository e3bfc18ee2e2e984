"""Case folding in which every code point stays one code point (behaviour B7).

fold(c) is ``c.lower()`` where that is one code point, else c: so the Kelvin sign is k, but
ß is not ss, and a place in the folded text is the same place in the text.
"""

from __future__ import annotations

from typing import Final

_SLICE: Final = 64 * 1024  # code points folded at a time, so that a huge text is never doubled


def fold_text(text: str) -> str:
    """Fold each code point of ``text`` on its own; the length does not change."""
    if text.isascii():
        return text.lower()
    # str.lower looks round a capital sigma, and makes two code points of İ alone.
    text = text.replace("\u03a3", "\u03c3")
    if "\u0130" in text:
        return "\u0130".join(part.lower() for part in text.split("\u0130"))
    return text.lower()


def find_folded(text: str, folded: str, start: int = 0) -> int:
    """Return the place of ``folded``, a folded text, in ``text`` from ``start`` on, or -1.

    Places are in code points. ``text`` is folded in slices of bounded size.
    """
    if not folded:
        return start if start <= len(text) else -1
    overlap = len(folded) - 1
    while start + overlap < len(text):
        end = start + _SLICE + overlap
        place = fold_text(text[start:end]).find(folded)
        if place >= 0:
            return start + place
        start += _SLICE
    return -1
