"""Telling an index file that is damaged, by SQLite's word or by what it holds (behaviour B4).

SQLite finds a torn page, but neither a table that is missing for somebody dropped it, nor
a value that was never written.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import apsw
import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

_DAMAGE: Final = (
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.FormatError,
    apsw.MismatchError,
    apsw.ConstraintError,
)
# Other errors in SQL are none of the file's: FTS5 says of a query, too, that it is wrong.
_LOST: Final = (
    "no such table",
    "no such column",
    "has no column",
    "columns but",
    "vtable constructor failed",
    "invalid fts5 file format",
)

SPOILT: Final = (msgspec.MsgspecError, ArithmeticError, LookupError, TypeError, ValueError)
"""What making something of a stored value raises that was never stored."""


def is_damage(error: apsw.Error) -> bool:
    """Whether ``error`` says that the file is damaged and has to be made anew."""
    if isinstance(error, apsw.SQLError):
        return any(sign in str(error) for sign in _LOST)
    return isinstance(error, _DAMAGE)


@contextmanager
def as_written() -> Iterator[None]:
    """Take a stored value that cannot be read for damage. Raises apsw.CorruptError."""
    try:
        yield
    except SPOILT as error:
        raise apsw.CorruptError(f"a stored value is spoilt: {error}") from error
