"""What a write may do: execute statements at a time of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flue_grpc.store.connections import Row, first_row

if TYPE_CHECKING:
    import apsw

    from flue_grpc.store.clock import Clock


class Batch:
    """The statements of one write, and which sessions its followers should hear of."""

    __slots__ = ("_clock", "connection", "deleted", "touched")

    def __init__(self, connection: apsw.Connection, clock: Clock) -> None:
        """Begin within the transaction of ``connection``."""
        self.connection = connection
        self._clock = clock
        self.touched: list[str] = []
        self.deleted: list[str] = []

    def execute(self, sql: str, bindings: Row = ()) -> None:
        """Execute a statement that returns no rows."""
        self.connection.execute(sql, bindings)

    def row(self, sql: str, bindings: Row = ()) -> Row | None:
        """Execute a statement and return its first row, None when there is none."""
        return first_row(self.connection, sql, bindings)

    def insert(self, sql: str, bindings: Row) -> int:
        """Execute an INSERT of one row and return its id."""
        self.connection.execute(sql, bindings)
        return self.connection.last_insert_rowid()

    def change(self, sql: str, bindings: Row) -> int:
        """Execute an UPDATE or DELETE and return how many rows it changed."""
        self.connection.execute(sql, bindings)
        return self.connection.changes()

    def now(self) -> int:
        """Return the time of this write, in microseconds, after every earlier one."""
        return self._clock.tick()

    def age(self) -> int:
        """Return a time that passes while the Store is open; see Clock.age."""
        return self._clock.age()
