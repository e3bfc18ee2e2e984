"""Where the tokens of a text stand in the text itself, not in its index form."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from flue_grpc.text import scripts
from flue_grpc.text.index_form import BARRIER, compose, separate, space_out, split_runs
from flue_grpc.text.tokenizer import token_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CHUNK: Final = 8 * 1024  # code points: a match is mostly found in the first chunk
_CHUNK_MAX: Final = 64 * 1024  # a longer run without white space is cut where it is
_WHITE: Final = re.compile(r"\s")


class Chunk:
    """The tokens of a part of a text, in order, and where each stands.

    ``tokens`` are (start, end, token) in bytes of the part's index form; the first
    ``repeated`` are the last of the chunk before, so that no phrase is cut.
    """

    def __init__(self, text: str, start: int, end: int, repeated: int) -> None:
        self.repeated = repeated
        part = text[start:end]
        composed, self._origins = _composed(part, start)
        pieces = [composed] if part.isascii() else split_runs(separate(composed))
        forms = space_out(pieces)
        self._starts = list(accumulate(map(len, pieces), initial=0))
        self._form_starts = list(accumulate(map(len, forms), initial=0))
        self._form = "".join(forms).encode()
        self._count_first, self._count_last = _Count(self._form), _Count(self._form)
        self.tokens = token_spans(self._form)

    def place(self, first: int, last: int) -> tuple[int, int]:
        """Return the half-open span, in code points of the text, of two tokens and between."""
        start = self._composed_place(self._count_first.at(self.tokens[first][0]))
        end = self._composed_place(self._count_last.at(self.tokens[last][1]) - 1)
        behind = bisect_right(self._origins, self._origins[end], end)
        return self._origins[start], self._origins[behind]

    def _composed_place(self, at: int) -> int:
        """Return the place in the composed text of a code point of the index form."""
        piece = bisect_right(self._form_starts, at) - 1
        shift = at - self._form_starts[piece]
        return self._starts[piece] + (shift // 2 if piece % 2 else shift)


class _Count:
    """Counts code points from where it counted last: places are asked for in order."""

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded
        self._size = self._count = 0

    def at(self, size: int) -> int:
        """Return how many code points the first ``size`` bytes have."""
        if size >= self._size:
            self._count += len(self._encoded[self._size : size].decode())
        else:
            self._count -= len(self._encoded[size : self._size].decode())
        self._size = size
        return self._count


def chunks(text: str, overlap: int) -> Iterator[Chunk]:
    """Yield ``text`` in parts, each with the last ``overlap`` tokens of the part before.

    A caller that stops early pays for the beginning only. But for the repeated ones, the
    tokens are those of ``index_text(text)``.
    """
    start = end = repeated = 0
    while end < len(text):
        end = _chunk_end(text, end)
        chunk = Chunk(text, start, end, repeated)
        yield chunk
        start, repeated = _carry(chunk, overlap) if chunk.tokens else (end, 0)


def _carry(chunk: Chunk, overlap: int) -> tuple[int, int]:
    """Return where the next chunk starts, and how many tokens it repeats."""
    first = max(0, len(chunk.tokens) - overlap)
    while first and _leans(chunk, first):
        first -= 1
    return chunk.place(first, first)[0], len(chunk.tokens) - first


def _leans(chunk: Chunk, number: int) -> bool:
    """Say whether a token would not be the same without the one before it."""
    token = chunk.tokens[number][2]
    if token == BARRIER or unicodedata.category(token[0])[0] == "M":
        return True
    return chunk.place(number, number)[0] < chunk.place(number - 1, number - 1)[1]


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


def _composed(part: str, start: int) -> tuple[str, Sequence[int]]:
    """Compose ``part``; tell for each code point, and for the end, where it comes from."""
    composed = compose(part)
    if composed == part:
        return composed, range(start, start + len(part) + 1)
    atoms: list[str] = []
    origins: list[int] = []
    for atom in _atom().finditer(part):
        whole = compose(atom[0])
        first = start + atom.start()
        is_same = len(whole) == len(atom[0])
        atoms.append(whole)
        origins.extend(range(first, start + atom.end()) if is_same else [first] * len(whole))
    origins.append(start + len(part))
    return "".join(atoms), origins


@cache
def _joins() -> str:
    """Return the class body of what composes with the code point before it."""
    return f"{scripts.marks()[0]}\u1160-\u11ff\uff9e\uff9f\uffc2-\uffdc\U00016d67"


@cache
def _joining() -> re.Pattern[str]:
    return re.compile(f"[{_joins()}]+")


@cache
def _atom() -> re.Pattern[str]:
    """Match what composes together: a code point and all that joins it."""
    return re.compile(f"[^{_joins()}]?[{_joins()}]+|[^{_joins()}]", re.DOTALL)
