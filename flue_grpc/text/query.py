"""The one query parser: words of the Store, and the RANKED language of the index."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from flue_grpc import limits
from flue_grpc.errors import BadQueryError, EmptyQueryError, QueryTooLongError
from flue_grpc.text.clean import sanitize
from flue_grpc.text.index_form import index_text
from flue_grpc.text.tokenizer import token_spans, tokens

# A phrase with its closing quote, if any, or a word up to white space or a quote.
_PIECE: Final = re.compile(r'(?P<minus>-?)"(?P<phrase>[^"]*)(?P<close>"?)|(?P<word>[^\s"]+)')


class Term(msgspec.Struct, frozen=True):
    """Adjacent tokens in index form; with ``is_prefix`` the last may go on."""

    tokens: tuple[str, ...]
    is_prefix: bool = False


class Query(msgspec.Struct, frozen=True):
    """What a text must hold and what it must not; distinct terms, in query order."""

    required: tuple[Term, ...]
    excluded: tuple[Term, ...] = ()

    @property
    def matches_nothing(self) -> bool:
        """Nothing is left to look for: the result is empty, not an error."""
        return not self.required


def parse_plain(query: str) -> Query:
    """Read ``query`` as words without any syntax (behaviour A3.2).

    Each word, separated by white space or NUL, is one term of adjacent tokens; words
    without a letter or digit are left out. Raise EmptyQueryError for a blank query and
    QueryTooLongError above 8 KiB.
    """
    words = _checked(query).split()
    return Query(_distinct([_term(word) for word in words]))


def parse_ranked(query: str) -> Query:
    """Read ``query`` as words, "phrases", prefix* and -words (behaviour B7).

    A minus negates at the start of a word or phrase only, a star means prefix at the end
    of a word only. Raise as ``parse_plain`` does; QueryTooLongError also above 64 terms;
    BadQueryError with ``position`` in code points for an unclosed quote, and for a query
    that only excludes.
    """
    text = _checked(query)
    required: list[Term] = []
    excluded: list[Term] = []
    pieces = list(_PIECE.finditer(text))
    if len(pieces) > limits.RANKED_TERMS:
        raise QueryTooLongError(
            "The query has too many terms.", "query", {"limit": str(limits.RANKED_TERMS)}
        )
    negated = [_is_negated(piece) for piece in pieces]
    for piece, is_negated in zip(pieces, negated, strict=True):
        (excluded if is_negated else required).append(_piece_term(piece))
    if pieces and all(negated):
        raise _bad_query("The query only excludes.", pieces[0].start())
    return Query(_distinct(required), _distinct(excluded))


def parse_literal(query: str) -> str:
    """Return ``query`` without white space at its ends, for a search of literal text.

    Raise EmptyQueryError for a blank query and QueryTooLongError above 8 KiB.
    """
    _checked(query)
    return query.strip()


def _checked(query: str) -> str:
    """Check size and blankness; NUL separates, and positions stay what they were."""
    size = len(query.encode("utf-8", "surrogatepass"))
    if size > limits.QUERY_BYTES:
        raise QueryTooLongError(
            "The query is too long.", "query", {"limit": str(limits.QUERY_BYTES)}
        )
    if not query.strip():
        raise EmptyQueryError("The query is blank.", "query")
    return sanitize(query.replace("\0", " "))


def _bad_query(message: str, position: int) -> BadQueryError:
    return BadQueryError(message, "query", {"position": str(position)})


def _term(text: str) -> Term:
    return Term(tuple(tokens(index_text(text))))


def _prefix_term(stem: str) -> Term:
    """Make a prefix of the last token where the stem ends in it."""
    form = index_text(stem).encode()
    spans = token_spans(form)
    # After a split character the form ends with a space: no token goes on from there.
    is_prefix = bool(spans) and spans[-1][1] == len(form)
    return Term(tuple(token for _, _, token in spans), is_prefix)


def _is_negated(piece: re.Match[str]) -> bool:
    """Say whether the piece begins with a minus that has something behind it."""
    begins = piece.start() == 0 or piece.string[piece.start() - 1].isspace()
    return begins and (piece["minus"] == "-" or (piece["word"] or "")[:-1].startswith("-"))


def _piece_term(piece: re.Match[str]) -> Term:
    if piece["word"] is None:
        if not piece["close"]:
            raise _bad_query("A quote is not closed.", piece.start("phrase") - 1)
        return _term(piece["phrase"])
    stem = piece["word"].rstrip("*")
    return _term(stem) if stem == piece["word"] else _prefix_term(stem)


def _distinct(terms: list[Term]) -> tuple[Term, ...]:
    """Leave out terms without tokens and repetitions."""
    return tuple(dict.fromkeys(term for term in terms if term.tokens))
