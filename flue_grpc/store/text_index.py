"""The two full-text indexes: contentless, fed by the application (behaviour A3.1, A3.3).

SQLite cannot fill or check them by itself, since they hold no text. Each is
written in the transaction of the row that it stands for.
"""

from __future__ import annotations

from typing import Final

import apsw
import msgspec

from flue_grpc import limits
from flue_grpc.store.connections import first_row
from flue_grpc.text.index_form import index_text
from flue_grpc.text.tokenizer import TOKENIZER

_PARTS: Final = ("data", "idx", "docsize", "config")  # FTS5's tables of a contentless index
_DEFAULT_HASH_BYTES: Final = 1024 * 1024  # FTS5's own


class TextIndex(msgspec.Struct, frozen=True):
    """One index: ``name`` is its table, ``covered`` the rows it stands for.

    ``counted`` are the same rows, by a way that reads no text.
    """

    name: str
    covered: str
    counted: str

    @property
    def schema(self) -> str:
        """The statement that creates it."""
        return (
            f"CREATE VIRTUAL TABLE {self.name} USING fts5("
            f"content, content='', contentless_delete=1, tokenize=\"{TOKENIZER}\")"
        )

    def add(self, connection: apsw.Connection, rowid: int, content: str) -> None:
        """Index the text of a new row; one that is indexed already must be removed first."""
        connection.execute(
            f"INSERT INTO {self.name} (rowid, content) VALUES (?, ?)", (rowid, index_text(content))
        )

    def remove(self, connection: apsw.Connection, rowid: int) -> None:
        """Forget a row; one that was not indexed is no error."""
        connection.execute(f"DELETE FROM {self.name} WHERE rowid = ?", (rowid,))

    def is_readable(self, connection: apsw.Connection) -> bool:
        """Whether FTS5 can open the index and has all of its tables."""
        try:
            first_row(connection, f"SELECT rowid FROM {self.name}")
        except (apsw.CorruptError, apsw.SQLError):
            return False
        return connection.table_exists("main", f"{self.name}_docsize")

    def is_complete(self, connection: apsw.Connection) -> bool:
        """Compare the number and the last of the rows with what is indexed: cheap, not proof."""
        if not self.is_readable(connection):
            return False
        indexed = first_row(connection, f"SELECT count(*), max(id) FROM {self.name}_docsize")
        expected = first_row(connection, f"SELECT count(*), max(id) FROM {self.counted}")
        return indexed == expected

    def refill(self, connection: apsw.Connection) -> int:
        """Drop the index and fill it anew within the caller's transaction; count the rows."""
        self._drop(connection)
        connection.execute(self.schema)
        self._configure(connection, "hashsize", limits.INDEX_HASH_BYTES)
        count = self.fill(connection, connection)
        connection.execute(f"INSERT INTO {self.name} ({self.name}) VALUES ('optimize')")
        self._configure(connection, "hashsize", _DEFAULT_HASH_BYTES)
        return count

    def fill(self, source: apsw.Connection, target: apsw.Connection) -> int:
        """Add every row of ``source`` to the empty index in ``target``; count them."""
        count = 0
        for rowid, content in source.execute(f"SELECT id, content FROM {self.covered}"):
            self.add(target, rowid, content)
            count += 1
        return count

    def _drop(self, connection: apsw.Connection) -> None:
        try:
            connection.execute(f"DROP TABLE IF EXISTS {self.name}")
        except apsw.SQLError:
            # FTS5 does not know its own tables any more, so they are dropped one by one.
            connection.pragma("writable_schema", value=True)
            connection.execute("DELETE FROM sqlite_schema WHERE name = ?", (self.name,))
            connection.pragma("writable_schema", "reset")
            for part in _PARTS:
                connection.execute(f"DROP TABLE IF EXISTS {self.name}_{part}")

    def _configure(self, connection: apsw.Connection, option: str, value: int) -> None:
        connection.execute(
            f"INSERT INTO {self.name} ({self.name}, rank) VALUES (?, ?)", (option, value)
        )


MESSAGE_INDEX: Final = TextIndex(
    "message_index",
    "messages WHERE searchable",
    "messages INDEXED BY messages_by_session WHERE searchable",
)
MEMORY_INDEX: Final = TextIndex("memory_index", "memory_entries", "memory_entries")
INDEXES: Final = (MESSAGE_INDEX, MEMORY_INDEX)
