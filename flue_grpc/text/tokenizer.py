"""SQLite's own tokenizer, called from Python: the one judge of what a token is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import apsw

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKENIZER: Final = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
"""The tokenizer of every search index (behaviour A3.3), as ``tokenize="…"`` takes it."""

# Stateless, and it holds the interpreter lock while it runs, so threads may share it.
_unicode61: Final = apsw.Connection(":memory:").fts5_tokenizer(
    "unicode61", ["remove_diacritics", "2", "categories", "L* N* Co Mn Mc"]
)


def tokens(index_form: str) -> list[str]:
    """Return the folded tokens that SQLite makes of a text in index form."""
    found = _unicode61(
        index_form.encode(),
        apsw.FTS5_TOKENIZE_DOCUMENT,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    return cast("list[str]", found)


def token_spans(index_form: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, token) for each token, the positions in code points."""
    encoded = index_form.encode()
    found = _unicode61(encoded, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False)
    spans = cast("list[tuple[int, int, str]]", found)
    if len(encoded) == len(index_form):
        yield from spans
        return
    place = size = 0
    for start, end, token in spans:
        place += len(encoded[size:start].decode())
        length = len(encoded[start:end].decode())
        yield place, place + length, token
        place += length
        size = end
