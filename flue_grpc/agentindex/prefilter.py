"""Which byte patterns a matching line must hold (behaviour B7, techniques §6).

A line without them cannot hold the query in any message, however its JSON is written:
every candidate is still decoded and verified, so a pattern may match too much, never
too little. The query is taken folded, as ``text.casefold`` folds.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from flue_grpc.agentindex.escapes import ESCAPED, RAW, Escape, has_controls
from flue_grpc.text.casefold import fold_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Printable ASCII without what JSON escapes in short (`"`, `\`, `/`) and without the
# characters beside which compact JSON drops white space.
_FRAGMENT: Final = re.compile(r"[ !#-+\-.0-9;-@A-Z^-z|~]+")
# Adapters write "$ " before a shell command (formats §4.2): it is in no file.
_INSERTED: Final = re.compile(r"^ |\$ |\$$")
# They name blocks that are no text after their type, all but this one.
_PLACEHOLDER: Final = "document"
_ITS_TYPE: Final = b"input_file"
_RUN: Final = re.compile("[^\x00-\x7f\ufffd]+")
_SHORT_LETTERS: Final = "btnfr"  # what compact JSON may write for a raw control character
_LONG_LETTERS: Final = ("u", "0", "0", "01", "0123456789abcdef")
_ANCHOR_CHARACTERS: Final = 128  # a longer one is no faster, and windows overlap by it
_RUN_CHARACTERS: Final = 4  # each multiplies the case variants
_GOOD_ANCHOR: Final = 3  # fewer characters stand in nearly every line
_OTHERS: Final = 8  # looked for in each candidate; more would hardly tell more
_HIDING: Final = re.compile(
    rb"\\u(?:" + ESCAPED[Escape.ASCII] + b"|" + ESCAPED[Escape.LETTER] + b")"
).search
_CASED_END: Final = 0x20000  # no letter beyond it has case


class Prefilter(msgspec.Struct, frozen=True):
    r"""What to look for; a line is a candidate when it holds any of it.

    ``literal`` stands in the bytes lowered as ASCII; ``pattern``, a regular expression,
    in the bytes as they are; ``escaped`` is what follows ``\u`` in the escapes of the
    pattern's characters; ``needs`` are the kinds of escape that can hide the literal.
    When all are empty, every line is a candidate. A candidate has to hold ``others``
    too, each lowered as ASCII, unless something in the line may hide them.
    """

    literal: bytes = b""
    pattern: bytes = b""
    escaped: bytes = b""
    needs: Escape = Escape.NONE
    others: tuple[bytes, ...] = ()

    @property
    def takes_everything(self) -> bool:
        """Whether the query has nothing to look for in bytes."""
        return not self.literal and not self.pattern

    @property
    def relevant(self) -> int:
        """The kinds of escape on which ``patterns`` depends."""
        return int(self.needs | Escape.WIDE) if self.escaped else int(self.needs)

    def patterns(self, kinds: int) -> tuple[bytes, ...]:
        """Return the regular expressions to look for in bytes with these kinds of escape."""
        needs = self.needs & kinds
        escapes = [ESCAPED[kind] for kind in ESCAPED if kind & needs]
        if self.escaped and kinds & Escape.WIDE:
            escapes.append(self.escaped)
        found = [self.pattern] if self.pattern else []
        found += [RAW[kind] for kind in RAW if kind & needs]
        return (*found, rb"\\u" + _any_of(escapes)) if escapes else tuple(found)

    def admits(self, line: bytes) -> bool:
        """Say whether a candidate can hold the rest of the query as well."""
        if not self.others:
            return True
        lowered = line.lower()
        if all(other in lowered for other in self.others):
            return True
        return _HIDING(line) is not None or has_controls(line.removesuffix(b"\r"))


def derive(query: str) -> Prefilter:
    """Return the prefilter of a folded, non-empty query."""
    anchors = [anchor for piece in _pieces(query) for anchor in _anchors(piece)]
    best = max(anchors, key=_Anchor.rank, default=None)
    runs = [
        run[start : start + _RUN_CHARACTERS]
        for run in _RUN.findall(query)
        for start in range(len(run))
    ]
    if best is None and not runs:
        return Prefilter()
    if best is not None and (not runs or len(best.text) >= _GOOD_ANCHOR):
        found = best.prefilter()
    else:
        found = _of_run(max(runs, key=_run_rank))
    return replace(found, others=_others(query, found.literal))


class _Anchor(msgspec.Struct, frozen=True):
    text: str
    needs: Escape

    def rank(self) -> tuple[bool, bool, bool, int]:
        """Order by use: long enough, then cheap to guard, then the longest."""
        return (
            len(self.text) >= _GOOD_ANCHOR,
            not self.needs & Escape.KELVIN,
            not self.needs & Escape.CONTROL,
            len(self.text),
        )

    def prefilter(self) -> Prefilter:
        literal = self.text[:_ANCHOR_CHARACTERS].encode()
        pattern = as_pattern(_ITS_TYPE) if self.text in _PLACEHOLDER else b""
        return Prefilter(literal=literal, pattern=pattern, needs=self.needs)


def _pieces(query: str) -> Iterator[str]:
    """Yield the stretches of the query that stand in the file as they are, unless escaped."""
    for fragment in _FRAGMENT.findall(query):
        yield from filter(None, _INSERTED.split(fragment))


def _anchors(piece: str) -> Iterator[_Anchor]:
    for text in {piece, *piece.split("k")}:
        needs = Escape.ASCII | (Escape.KELVIN if "k" in text else Escape.NONE)
        rendered = _rendered(text)
        if rendered:
            yield _Anchor(text, needs | Escape.LETTER | Escape.CONTROL)
        if text[rendered:]:
            yield _Anchor(text[rendered:], needs)


def _others(query: str, literal: bytes) -> tuple[bytes, ...]:
    """Return what else of the query a candidate must hold, the longest first."""
    parts = {part for piece in _pieces(query) for part in piece.split("k")}
    wanted = {part.encode() for part in parts if part not in _PLACEHOLDER} - {literal}
    return tuple(sorted(wanted, key=lambda part: (-len(part), part))[:_OTHERS])


def _rendered(text: str) -> int:
    r"""Count the leading characters that may be of an escape that compact JSON writes anew.

    A tab in the input of a tool is shown as ``\t``, whatever the file has for it.
    """
    count = 1 if text and text[0] in _SHORT_LETTERS else 0
    for start in range(len(_LONG_LETTERS)):
        letters = _LONG_LETTERS[start:]
        if text and all(
            character in those for character, those in zip(text, letters, strict=False)
        ):
            count = max(count, len(letters))
    return count


def _of_run(run: str) -> Prefilter:
    forms = [_variants(character) for character in run]
    pattern = b"".join(_any_of([as_pattern(form.encode()) for form in those]) for those in forms)
    units = sorted({_first_unit(form) for those in forms for form in those})
    return Prefilter(pattern=pattern, escaped=_any_of([_hex(unit) for unit in units]))


def _run_rank(run: str) -> tuple[int, int]:
    """Order runs: few case variants first, then many characters."""
    return -len(_variants(run[0])), len(run)


def _variants(character: str) -> tuple[str, ...]:
    """Return every code point that folds to ``character``."""
    return (character, *_upper_forms().get(character, ()))


@cache
def _upper_forms() -> Mapping[str, tuple[str, ...]]:
    forms: dict[str, tuple[str, ...]] = {}
    for character in map(chr, range(0x80, _CASED_END)):
        folded = fold_text(character)
        if folded != character:
            forms[folded] = (*forms.get(folded, ()), character)
    return forms


def _first_unit(character: str) -> int:
    """Return the first UTF-16 unit, with which each JSON escape of it begins."""
    return int.from_bytes(character.encode("utf-16-be")[:2])


def _hex(unit: int) -> bytes:
    digits = (f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in f"{unit:04x}")
    return "".join(digits).encode()


def as_pattern(data: bytes) -> bytes:
    """Return a regular expression for these very bytes."""
    return b"".join(b"\\x%02x" % byte for byte in data)


def _any_of(alternatives: list[bytes]) -> bytes:
    return alternatives[0] if len(alternatives) == 1 else b"(?:" + b"|".join(alternatives) + b")"
