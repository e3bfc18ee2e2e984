"""Text from transcripts and terminals, made fit for the wire and for one line.

Everything here is linear in the text. White space is what ``str.isspace`` says.
"""

from __future__ import annotations

import re
from typing import Final

REPLACEMENT: Final = "\ufffd"

# Possessive: an unterminated string costs one pass, however many start in the text.
ANSI: Final = re.compile(
    "\x1b\\][^\x07\x1b]*+(?:\x07|\x1b\\\\)"  # OSC: titles, hyperlinks
    "|\x1b[PX^_][^\x1b]*+\x1b\\\\"  # DCS, SOS, PM, APC
    "|(?:\x1b\\[|\x9b)[0-?]*+[ -/]*+[@-~]?"  # CSI: colours, cursor
    "|\x1b[ -/]*+[0-~]?"  # two-character escapes, and a lone ESC
)
CONTROL: Final = "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]"

_CONTROLS: Final = re.compile(f"{CONTROL}+")
_SOLID: Final = re.compile(r"\S")


def sanitize(text: str) -> str:
    """Make ``text`` encodable: each lone surrogate and NUL becomes U+FFFD (contract rule 7).

    Surrogate pairs that were decoded apart are joined. Sound text is returned as it is.
    """
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    if text.isascii():
        return text
    try:
        # Twice the speed of a search for surrogates, and most text has none.
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def strip_ansi(text: str) -> str:
    """Remove terminal escape sequences, cut-off ones too."""
    if "\x1b" not in text and "\x9b" not in text:
        return text
    return ANSI.sub("", text)


def strip_controls(text: str) -> str:
    """Remove control characters that are not white space."""
    return _CONTROLS.sub("", text)


def fold_whitespace(text: str) -> str:
    """Make each run of white space one space and trim both ends."""
    return " ".join(text.split())


def first_line(text: str, code_points: int) -> str:
    """Return the first line that shows something, for a title (formats §8.12).

    Escape sequences and control characters are removed, white space is folded, and at
    most ``code_points`` are kept. Empty when nothing shows.
    """
    start = 0
    while (solid := _SOLID.search(text, start)) is not None:
        start = solid.start()
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = fold_whitespace(strip_controls(strip_ansi(text[start:end])))
        if line:
            return cut_code_points(line, code_points).rstrip()
        start = end + 1
    return ""


def cut_bytes(text: str, size: int) -> str:
    """Return the longest beginning of ``text`` whose UTF-8 form has at most ``size`` bytes."""
    if text.isascii():
        return text[:size]
    if len(text) * 4 <= size:
        return text
    head = text[:size].encode()
    if len(head) <= size:
        return text[:size]
    return head[:size].decode("utf-8", "ignore")


def cut_code_points(text: str, count: int) -> str:
    """Return the first ``count`` code points."""
    return text[:count]
