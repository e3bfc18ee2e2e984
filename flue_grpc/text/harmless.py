"""Text of strangers, made harmless for whoever reads it: on a terminal, or in a document.

A transcript can hold anything a program ever printed: sequences that move the
cursor, rename the window or write to the clipboard, and characters that turn the
direction of what is read. None of them reaches a terminal.
"""

from __future__ import annotations

import re
from typing import Final

from flue_grpc.text.clean import strip_ansi

# Overrides and isolates only: the marks that Arabic and Hebrew need turn nothing.
BIDI: Final = "\u202a-\u202e\u2066-\u2069"
_LINE_ENDS: Final = "\u0085\u2028\u2029"

# Tab and line feed alone move a cursor as a reader expects.
_UNSAFE: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029{BIDI}]")
_BREAKS: Final = re.compile(f"[\t\n\r\x0b\x0c\x1c-\x1e{_LINE_ENDS}]+")
_PICTURES: Final = 0x2400
_DELETE: Final = 0x7F
_DELETE_PICTURE: Final = "\u2421"
_SPACE: Final = 0x20
_REPLACEMENT: Final = "\ufffd"


def for_terminal(text: str) -> str:
    """Remove escape sequences and make every other control character visible."""
    return visible(strip_ansi(text.replace("\r\n", "\n")))


def for_line(text: str) -> str:
    """Do the same, and make one line of it."""
    return for_terminal(_BREAKS.sub(" ", strip_ansi(text))).strip()


def visible(text: str) -> str:
    """Make every control character visible, and leave out nothing."""
    return _UNSAFE.sub(_picture, text)


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < _SPACE:
        return chr(_PICTURES + code)
    return _DELETE_PICTURE if code == _DELETE else _REPLACEMENT
