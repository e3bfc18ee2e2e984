"""SQLite's own tokenizer, called from Python: the one judge of what a token is."""

from __future__ import annotations

from typing import Final, cast

import apsw

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


def token_spans(index_form: bytes) -> list[tuple[int, int, str]]:
    """Return (start, end, token) for each token, the positions in bytes of the UTF-8 text."""
    found = _unicode61(index_form, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False)
    return cast("list[tuple[int, int, str]]", found)
