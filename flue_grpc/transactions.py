"""One transaction of SQLite, whose failures stay what they were."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Commit what is done within, or undo it and raise what failed.

    A connection as a context manager would raise an error of its own instead when
    SQLite has undone the transaction by itself, as it does after a failed read or write.
    """
    connection.execute("BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
