"""The form in which text is indexed and looked up (behaviour A3.2, A3.3).

The index is contentless FTS5; the application feeds it ``index_text`` of each text.
Queries, the verification of candidates and snippets go through the same form and the same
tokenizer, so they cannot disagree with the index.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from flue_grpc import limits
from flue_grpc.text import scripts
from flue_grpc.text.pieces import pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

BARRIER: Final = "\ue000"
"""Stands for punctuation between two split runs, so that no phrase crosses it."""

_CACHED_GAP: Final = 8  # code points; short gaps recur all the time

# One cheap class lets most non-ASCII text (accents, quotes, arrows, boxes) pass at once.
_SPECIAL: Final = re.compile(
    "[\u0300-\u036f\u0483-\u1dff\u2066-\u2069\u20ba-\u20ff\u218a\u218b\u23f4-\u23ff\u2427-\u2429"
    "\u2700\u2adc\u2b4d-\uffff\U00010000-\U0010ffff]"
)
# Width forms of punctuation need no folding: they separate as their plain forms do.
_WIDTH_BODY: Final = "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uffdc"
_WIDTH: Final = re.compile(f"[{_WIDTH_BODY}]+")
_OPAQUE: Final = re.compile(f"[{scripts.bmp(scripts.OPAQUE)}]+")
_MARK_BLOCKS: Final = re.compile(f"[{scripts.bmp(scripts.MARK_BLOCKS)}]")
_SELECTOR: Final = re.compile("[\ufe00-\ufe0f]")
_ODD: Final = re.compile(
    f"[{BARRIER}{_WIDTH_BODY}\ufe00-\ufe0f{scripts.bmp(scripts.OPAQUE)}"
    f"{scripts.bmp(scripts.MARK_BLOCKS)}]"
)
_ASTRAL_RUN: Final = re.compile("[\U00010000-\U0010ffff]+")
_ASTRAL_NOISE: Final = re.compile(f"[{scripts.OPAQUE}\U000e0100-\U000e01ef]")
_ASTRAL_MARK_BLOCKS: Final = re.compile(f"[{scripts.MARK_BLOCKS}]")
_SPLIT_RUN: Final = re.compile(f"([{scripts.bmp(scripts.SPLIT)}]+)")
_ASTRAL_SPLIT_RUN: Final = re.compile(f"([{scripts.SPLIT}]+)")
_WORDY: Final = re.compile(f"[^\\W_]|[{scripts.PRIVATE_USE}]")


def index_text(text: str) -> str:
    """Return the index form of ``text``, in which SQLite finds the right tokens.

    NFC with width forms folded; each character of a script written without spaces stands
    alone; a barrier stands where only punctuation separates two such runs. What is no token
    character separates, and marks that stand on nothing are gone. ASCII text is its own form.
    """
    return text if text.isascii() else "".join(index_forms(text))


def index_forms(text: str) -> Iterator[str]:
    """Yield ``index_text`` of a text in pieces; no token goes on from one to the next."""
    for piece in pieces(text):
        form = _form(piece.text)
        # The letter that leads the next piece, and the space behind it.
        yield form[:-2] if piece.is_led else form


def _form(text: str) -> str:
    if text.isascii():
        return text
    if _SPECIAL.search(text) is None:
        return _composed(text)
    return "".join(space_out(split_runs(separate(compose(text)))))


def compose(text: str) -> str:
    """Fold width forms and compose accents; literal barriers are doubled, so none is forged.

    Of the marks behind one another the first 30 stay, the rest become spaces.
    """
    if _ODD.search(text):
        text = text.replace(BARRIER, BARRIER * 2)
        text = _WIDTH.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)
    if _is_astral(text):
        if _ASTRAL_MARK_BLOCKS.search(text):
            text = _long_marks(scripts.marks()[0]).sub(_spaces, text)
    elif _MARK_BLOCKS.search(text):
        text = _long_marks(scripts.bmp(scripts.marks()[0])).sub(_spaces, text)
    return _composed(text)


def separate(text: str) -> str:
    """Put as many spaces for stray marks and for symbols that the tokenizer takes for letters."""
    is_astral = _is_astral(text)
    if is_astral:
        text = _ASTRAL_RUN.sub(_without_noise, text)
    if _ODD.search(text):
        text = _OPAQUE.sub(_spaces, _SELECTOR.sub(" ", text))
    blocks = _ASTRAL_MARK_BLOCKS if is_astral else _MARK_BLOCKS
    if blocks.search(text):
        for stray in _stray_marks():
            text = stray.sub(_spaces, text)
    return text


def split_runs(text: str) -> list[str]:
    """Cut ``text`` into pieces: those at odd places are runs of scripts without spaces."""
    return (_ASTRAL_SPLIT_RUN if _is_astral(text) else _SPLIT_RUN).split(text)


def space_out(pieces: list[str]) -> list[str]:
    """Return the index form of the pieces of ``split_runs``.

    A run of n characters becomes 2 n + 1, with a space before, between and after them. A
    gap stays, or becomes a barrier.
    """
    spaced = pieces.copy()
    for place in range(1, len(pieces), 2):
        spaced[place] = pieces[place].replace("", " ")
    for place in range(2, len(pieces) - 1, 2):
        gap = pieces[place]
        if _is_short_barrier(gap) if len(gap) < _CACHED_GAP else _is_barrier(gap):
            spaced[place] = BARRIER
    return spaced


def _is_barrier(gap: str) -> bool:
    """Say whether a phrase ends at ``gap``: punctuation and nothing with a token in it."""
    return _WORDY.search(gap) is None and any(unicodedata.category(c)[0] == "P" for c in gap)


_is_short_barrier = lru_cache(maxsize=4096)(_is_barrier)


def _composed(text: str) -> str:
    # The tokenizer folds case but for the sigma at the end of a Greek word.
    return unicodedata.normalize("NFC", text).replace("\u03c2", "\u03c3")


def _is_astral(text: str) -> bool:
    # An encoder is ten times as fast as any search.
    return len(text.encode("utf-16-le", "surrogatepass")) > 2 * len(text)


def _spaces(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _without_noise(run: re.Match[str]) -> str:
    return _ASTRAL_NOISE.sub(" ", run[0])


@cache
def _long_marks(marks: str) -> re.Pattern[str]:
    """Match the marks behind the first 30 of a run: the normalizer is slow on long runs."""
    mark = f"[{marks}]"
    return re.compile(f"{mark}(?<={mark}{{{limits.MARKS_IN_A_ROW + 1}}}){mark}*")


@cache
def _stray_marks() -> tuple[re.Pattern[str], ...]:
    """Match marks that no token character carries, and spaced scripts' marks on split ones."""
    every, spaced = scripts.marks()
    carrier = f"(?:[^\\W_]|[{scripts.PRIVATE_USE}{every}])"
    # A class at the front lets the search skip ahead; the look-behind follows it.
    return (
        re.compile(f"[{every}](?<!{carrier}[{every}])[{every}]*"),
        re.compile(f"[{spaced}](?<=[{scripts.SPLIT}][{spaced}])[{spaced}]*"),
    )
