"""Where the tokens of a text stand in the text itself, not in its index form."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.text import scripts
from flue_grpc.text.index_form import (
    BARRIER,
    compose,
    has_punctuation,
    is_wordy,
    separate,
    split_runs,
)
from flue_grpc.text.tokenizer import token_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CHUNK: Final = 8 * 1024  # code points located at a time: most matches are found early
_CHUNK_MAX: Final = 64 * 1024  # a longer run without white space is cut where it is
_WHITE: Final = re.compile(r"\s")


class Located(msgspec.Struct, frozen=True, gc=False):
    """One token, and the code points of the text that it was made of."""

    token: str
    start: int
    end: int


def located_tokens(text: str) -> Iterator[Located]:
    """Yield the tokens of ``index_text(text)`` in order, each with its place in ``text``.

    A barrier has the place of the run that follows it, and no extent. The text is worked
    through in chunks, so a caller that stops early pays for the beginning only.
    """
    gap = _Gap()
    start = 0
    while start < len(text):
        end = _chunk_end(text, start)
        chunk = text[start:end]
        if chunk.isascii():
            gap.note(chunk)
            yield from (Located(token, start + a, start + b) for a, b, token in token_spans(chunk))
        else:
            yield from _located(chunk, start, gap)
        start = end


class _Gap:
    """What was seen since the last run of a script without spaces."""

    def __init__(self) -> None:
        self._follows_run = False
        self._is_wordy = False
        self._has_punctuation = False

    def note(self, piece: str) -> None:
        if self._follows_run and not self._is_wordy and piece:
            self._is_wordy = is_wordy(piece)
            self._has_punctuation = self._has_punctuation or has_punctuation(piece)

    def close(self) -> bool:
        """End the gap at a run; say whether a barrier stands there."""
        is_barrier = self._follows_run and self._has_punctuation and not self._is_wordy
        self._follows_run, self._is_wordy, self._has_punctuation = True, False, False
        return is_barrier


def _located(chunk: str, start: int, gap: _Gap) -> Iterator[Located]:
    composed, origins = _composed(chunk, start)
    place = 0
    for number, piece in enumerate(split_runs(separate(composed))):
        if number % 2:
            if gap.close():
                yield Located(BARRIER, origins[place], origins[place])
            for at, token in enumerate(piece, place):
                yield Located(token, origins[at], _after(origins, at))
        else:
            gap.note(piece)
            for first, last, token in token_spans(piece):
                yield Located(token, origins[place + first], _after(origins, place + last - 1))
        place += len(piece)


def _after(origins: Sequence[int], at: int) -> int:
    """Return the end of what the code point at ``at`` was made of."""
    origin = origins[at]
    while origins[at] == origin:
        at += 1
    return origins[at]


def _chunk_end(text: str, start: int) -> int:
    """Return an end at white space, where nothing composes across."""
    if start + _CHUNK >= len(text):
        return len(text)
    white = _WHITE.search(text, start + _CHUNK, start + _CHUNK_MAX)
    if white:
        return white.start()
    end = min(start + _CHUNK_MAX, len(text))
    joined = _joining().match(text, end)
    return joined.end() if joined else end


def _composed(chunk: str, start: int) -> tuple[str, Sequence[int]]:
    """Compose ``chunk``; tell for each code point, and for the end, where it comes from."""
    composed = compose(chunk)
    if composed == chunk:
        return chunk, range(start, start + len(chunk) + 1)
    parts: list[str] = []
    origins: list[int] = []
    for atom in _atom().finditer(chunk):
        part = compose(atom[0])
        parts.append(part)
        first = start + atom.start()
        is_same = len(part) == len(atom[0])
        origins.extend(range(first, start + atom.end()) if is_same else [first] * len(part))
    origins.append(start + len(chunk))
    return "".join(parts), origins


@cache
def _joins() -> str:
    """Return the class body of what composes with the code point before it."""
    return f"{scripts.marks()[0]}\u1160-\u11ff\uff9e-\uffdc\U00016d67"


@cache
def _joining() -> re.Pattern[str]:
    return re.compile(f"[{_joins()}]+")


@cache
def _atom() -> re.Pattern[str]:
    """Match what composes together: a code point and all that joins it."""
    return re.compile(f"[^{_joins()}]?[{_joins()}]+|[^{_joins()}]", re.DOTALL)
