"""What a transcript's JSON can hide from a byte search, and where it is known not to.

A text is searched as code points, its file as bytes. Some bytes of a line can stand
for other characters than they look like: those are found here, so that a filter can
treat their lines with care and skip that care where there are none (techniques §6).
"""

from __future__ import annotations

import re
from enum import IntFlag
from typing import Final

import msgspec

KELVIN: Final = "\N{KELVIN SIGN}"  # the only code point beyond ASCII that folds into it


class Escape(IntFlag):
    r"""Kinds of hidden characters in the bytes of a transcript.

    ``ASCII``: a ``\u00XX`` of a printable ASCII character. ``LETTER``: an escape of a
    control character that compact JSON writes with a letter, as in ``\t``. ``CONTROL``:
    such a control character, or another one, raw. ``KELVIN``: the Kelvin sign, raw or
    escaped. ``WIDE``: an escape of any character beyond ASCII.
    """

    NONE = 0
    ASCII = 1
    LETTER = 2
    CONTROL = 4
    KELVIN = 8
    WIDE = 16
    ANY = 31


# Regular expressions over bytes, in the syntax that `re` and hyperscan share: what may
# follow a backslash and a u, and what may stand raw.
ESCAPED: Final = {
    Escape.ASCII: rb"00[2-7]",
    Escape.LETTER: rb"000[89aAcCdD]",
    Escape.KELVIN: rb"212[aA]",
    Escape.WIDE: rb"(?:00[89a-fA-F]|0[1-9a-fA-F]|[1-9a-fA-F])",
}
RAW: Final = {
    Escape.CONTROL: rb"[\x00-\x09\x0b\x0c\x0e-\x1f]|\r[^\n]",
    Escape.KELVIN: rb"\xe2\x84\xaa",
}
# All but the newline, and the return that may stand before it.
_CONTROLS: Final = bytes(byte for byte in range(0x20) if byte not in b"\r\n")
_SEARCHES: Final = (
    *((kind, re.compile(rb"\\u" + source).search) for kind, source in ESCAPED.items()),
    *((kind, re.compile(source).search) for kind, source in RAW.items()),
)


class KnownEscapes(msgspec.Struct, frozen=True, array_like=True):
    """Kinds that occur in the first ``until`` bytes of a transcript; no other kind does."""

    kinds: int = int(Escape.ANY)
    until: int = 0

    def within(self, end: int) -> int:
        """Return the kinds that may occur in the bytes before ``end``."""
        return self.kinds if end <= self.until else _ANY


_ANY: Final = int(Escape.ANY)
UNKNOWN: Final = KnownEscapes()


def escape_kinds(data: bytes) -> Escape:
    """Return the kinds of hidden characters in whole lines of a transcript."""
    found = Escape.NONE
    for kind, search in _SEARCHES:
        if not kind & found and (kind is not Escape.CONTROL or has_controls(data)) and search(data):
            found |= kind
    return found


def has_controls(data: bytes) -> bool:
    """Say whether ``data`` may hold a raw control character inside a line."""
    # Ten times as fast as a search for a class of bytes.
    if len(data.translate(None, _CONTROLS)) != len(data):
        return True
    return data.count(b"\r") != data.count(b"\r\n")
