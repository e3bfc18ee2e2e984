"""Texts with a vocabulary like that of real transcripts.

As in 6,800 real messages, the n-th commonest word is about as frequent as Zipf says, one
in eighty occurs nowhere else (an id, a number, a path), a message of n words has about
2.2 n^0.72 different ones, a word with what parts it from the next takes 7.2 characters,
and most messages are short while a few are long.
"""

from __future__ import annotations

import random
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Script = Literal["ascii", "mixed"]

_VOCABULARY: Final = 100_000
_ONCE: Final = 80  # one word in so many
_CONSONANTS: Final = "bcdfghjklmnpqrstvwxyz"
_VOWELS: Final = "aeiou"
_BREAKS: Final = [
    *[" "] * 10, ", ", ". ", ": ", "_", "/", ".", " = ", "();\n", "\n- ", "\n    ",
]  # fmt: skip
_ACCENTS: Final = str.maketrans("aeou", "áéöü")
_SENTENCE: Final = 14  # characters of Chinese between two marks


class Prose:
    """Makes the same texts each time: about 500 characters on average, few of them long.

    ``mixed`` are 60 % texts in Latin letters, some words with accents, 25 % where Chinese
    stands between, and 15 % in Chinese.
    """

    def __init__(self, script: Script) -> None:
        """Draw the vocabulary."""
        self._dice = random.Random(9)
        self._words = self._vocabulary()
        self._weights = _zipf(_VOCABULARY)
        self._signs = [chr(0x4E00 + number * 5) for number in self._dice.sample(range(3500), 3500)]
        self._sign_weights = _zipf(len(self._signs))
        self._script = script

    def texts(self, count: int) -> Iterator[str]:
        """Yield so many texts."""
        for _ in range(count):
            size = min(50_000, int(self._dice.lognormvariate(4.8, 1.7)) + 2)
            kind = self._dice.random() if self._script == "mixed" else 0.0
            if kind >= 0.85:
                yield self._chinese(size // 2)
            elif kind >= 0.6:
                half = size // 2
                yield f"{self._latin(half)} {self._chinese(half // 2)} {self._latin(half // 2)}"
            else:
                yield self._latin(size)

    def _latin(self, size: int) -> str:
        count = size // 7 + 1
        own = min(count, int(2.2 * count**0.72))
        words = self._dice.choices(self._words, cum_weights=self._weights, k=own)
        words += self._dice.choices(words, k=count - own)
        self._dice.shuffle(words)
        if self._script == "mixed":
            words[::6] = [word.translate(_ACCENTS) for word in words[::6]]
        breaks = self._dice.choices(_BREAKS, k=count)
        for place in range(self._dice.randrange(_ONCE), count, _ONCE):
            words[place] = self._once()
        return "".join(part for pair in zip(words, breaks, strict=True) for part in pair)

    def _chinese(self, size: int) -> str:
        signs = self._dice.choices(self._signs, cum_weights=self._sign_weights, k=size + 1)
        text = "".join(signs)
        return "，".join(text[at : at + _SENTENCE] for at in range(0, len(text), _SENTENCE))  # noqa: RUF001 - Chinese has its own comma

    def _once(self) -> str:
        number = self._dice.getrandbits(48)
        return self._dice.choice((f"{number:012x}", f"{number % 10**7}", f"src/m{number:x}.py"))

    def _vocabulary(self) -> list[str]:
        """Return distinct words, the common ones short."""
        words: dict[str, None] = {}
        while len(words) < _VOCABULARY:
            pairs = 1 + (len(words) > 20) + (len(words) > 1000) + self._dice.randrange(2)
            pick = self._dice.choice
            words["".join(pick(_CONSONANTS) + pick(_VOWELS) for _ in range(pairs))] = None
        return list(words)


def _zipf(count: int) -> list[float]:
    return list(accumulate(1 / (rank + 2.7) for rank in range(1, count + 1)))
