"""Cuts long text where its index form can be cut: a piece is quick work, and small."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc import limits
from flue_grpc.text import scripts

if TYPE_CHECKING:
    from collections.abc import Iterator

# Letters of split scripts that are a token alone and compose with nothing before them.
_ALONE: Final = (
    "\u0e01-\u0e30\u0e81\u0e82\u0ea1-\u0ea3\u0f40-\u0f42\u0f44-\u0f47\u1000-\u1021\u1100-\u1112\u1780-\u17a2"
    "\u3041-\u3096\u30a1-\u30fa\u3105-\u312c\u3400-\u4db5\u4e00-\u9fa5\uac00-\ud7a3\uff66-\uff6f"
    "\uff71-\uff9d\U00020000-\U0002a6d6"
)
_VOWEL: Final = "\u1161-\u1175"
_FINAL: Final = "\u11a8-\u11c2"
_SPACED: Final = f"[^\\W_{scripts.SPLIT}{scripts.OPAQUE}\uff66-\uffdc]"
_NO_WORD: Final = "[\\x00-/:-@\\[-`{-\\x7f]"


class Piece(msgspec.Struct, frozen=True):
    """A part of a text; with ``is_led`` it ends with the first letter of the next one.

    That letter stands alone in the index form, and shows what stands before it.
    """

    text: str
    is_led: bool


def pieces(text: str) -> Iterator[Piece]:
    """Cut ``text`` so that no token, barrier or composed character is torn apart.

    A piece has limits.PIECE_CODE_POINTS and what it takes to the next bound; only
    where one word, or what is no word, goes on for long is it much longer.
    """
    start = 0
    while start + limits.PIECE_CODE_POINTS < len(text):
        bound = _bound().search(text, start + limits.PIECE_CODE_POINTS)
        if bound is None:
            break
        is_led = bound.lastgroup is not None
        yield Piece(text[start : bound.end()], is_led)
        start = bound.end() - is_led
    yield Piece(text[start:], is_led=False)


@cache
def _bound() -> re.Pattern[str]:
    """Match up to a letter that leads, which is a group then, or up to the end of a word."""
    # A mark of a split script begins a run, and a barrier may follow it.
    marks = f"[{scripts.marks()[1]}]{{0,{limits.MARKS_IN_A_ROW}}}"
    return re.compile(
        f"(?P<alone>[{_ALONE}])|[{_VOWEL}{_FINAL}](?P<vowel>[{_VOWEL}])"
        f"|[{_FINAL}](?P<final>[{_FINAL}])|{_SPACED}{marks}(?={_NO_WORD})"
    )
