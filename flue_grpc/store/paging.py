"""Reads in bounded batches: no statement stays open while a client is slow (contract rule 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from flue_grpc import limits

if TYPE_CHECKING:
    import apsw

    from flue_grpc.store.connections import Row


class RowSize(Protocol):
    """About how many bytes of memory a row takes."""

    def __call__(self, row: Row, /) -> int:
        """Return the estimate."""


def read_batch(
    connection: apsw.Connection, sql: str, bindings: Row, size: RowSize
) -> tuple[list[Row], bool]:
    """Read the next rows of a statement whose last parameter is its LIMIT.

    At most limits.READ_BATCH_ROWS, and no further than the row that reaches
    limits.READ_BATCH_BYTES; True when the statement has no more.
    """
    rows: list[Row] = []
    total = 0
    cursor = connection.execute(sql, (*bindings, limits.READ_BATCH_ROWS))
    for row in cursor:
        rows.append(row)
        total += size(row)
        if total >= limits.READ_BATCH_BYTES:
            cursor.close(force=True)
            return rows, False
    return rows, len(rows) < limits.READ_BATCH_ROWS
