"""Upper bounds of serialised sizes, much cheaper than serialising twice.

protobuf for Python has no quick way to ask for the size of a message.
"""

from __future__ import annotations

from typing import Final

SCALARS_BYTES: Final = 160  # tags, lengths and numbers of any message of the contract
TEXT_BYTES: Final = 12  # tag and length of one more repeated text, with its envelope


def text_bytes(*texts: str) -> int:
    """Sum the UTF-8 sizes of texts."""
    return sum([len(text) if text.isascii() else len(text.encode()) for text in texts])
