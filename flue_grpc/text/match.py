"""From a query to what FTS5 looks up and what is verified in the candidates' text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc import limits
from flue_grpc.cancel import NEVER
from flue_grpc.text.index_form import index_forms
from flue_grpc.text.query import Term
from flue_grpc.text.tokenizer import tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flue_grpc.cancel import Cancel
    from flue_grpc.text.query import Query

_EDGE: Final = "\0"  # no token holds it


class Verifier(msgspec.Struct, frozen=True):
    """What remains to be found, or not to be found, in the text of each candidate."""

    required: tuple[str, ...]
    excluded: tuple[str, ...]

    def accepts(self, text: str, cancel: Cancel = NEVER) -> bool:
        """Say what FTS5 would say of ``text`` for the terms that it was not asked about.

        Holds a piece of the text at a time, and asks ``cancel`` before each.
        """
        needles = self.required + self.excluded
        longest = max((needle.count(_EDGE) for needle in needles), default=1)
        missing = self.required
        tail: list[str] = []
        for form in index_forms(text):
            cancel.check()
            found = tail + tokens(form)
            haystack = _EDGE.join(("", *found, ""))
            if any(needle in haystack for needle in self.excluded):
                return False
            missing = tuple(needle for needle in missing if needle not in haystack)
            if not missing and not self.excluded:
                return True
            tail = found[-longest:]
        return not missing


class Lookup(msgspec.Struct, frozen=True):
    """An FTS5 MATCH expression, and what it leaves to verify, if anything.

    The expression finds every text that the query matches; it also finds others exactly
    when there is a verifier.
    """

    expression: str
    verifier: Verifier | None


def lookup(query: Query) -> Lookup:
    """Plan ``query``: at most 64 tokens are looked up, 16 of one phrase (behaviour A3.2).

    The query must have a required term (``not query.matches_nothing``).
    """
    budget = limits.INDEXED_TOKENS
    found: list[Term] = []
    rest: list[Term] = []
    for term in query.required:
        count = min(budget, limits.INDEXED_PHRASE_TOKENS, len(term.tokens))
        if count < len(term.tokens):
            rest.append(term)
        if count:
            found.append(term if count == len(term.tokens) else Term(term.tokens[:count]))
        budget -= count
    barred: list[Term] = []
    rest_barred: list[Term] = []
    for term in query.excluded:
        # A beginning excludes too much, so an excluded term is looked up whole or not at all.
        fits = len(term.tokens) <= min(budget, limits.INDEXED_PHRASE_TOKENS)
        (barred if fits else rest_barred).append(term)
        budget -= len(term.tokens) if fits else 0
    expression = " AND ".join(map(_phrase, dict.fromkeys(found)))
    if barred:
        expression = f"({expression}) NOT ({' OR '.join(map(_phrase, barred))})"
    verifier = _verifier(rest, rest_barred) if rest or rest_barred else None
    return Lookup(expression, verifier)


def verifier(query: Query) -> Verifier:
    """Return what decides on the whole query without an index."""
    return _verifier(query.required, query.excluded)


def _verifier(required: Iterable[Term], excluded: Iterable[Term]) -> Verifier:
    return Verifier(tuple(map(_needle, required)), tuple(map(_needle, excluded)))


def _needle(term: Term) -> str:
    return _EDGE.join(("", *term.tokens)) + ("" if term.is_prefix else _EDGE)


def _phrase(term: Term) -> str:
    return f'"{" ".join(term.tokens)}"' + (" *" if term.is_prefix else "")
