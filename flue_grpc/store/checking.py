"""Checks a database and its search indexes, beside a running server too."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Final

import apsw
import msgspec

from flue_grpc.errors import UnusableDatabaseError
from flue_grpc.store import opening
from flue_grpc.store.connections import first_value, open_beside
from flue_grpc.store.text_index import INDEXES
from flue_grpc.transactions import transaction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flue_grpc.store.text_index import TextIndex
    from flue_grpc.store.values import StoreSettings

_PROBLEMS_MAX: Final = 100  # SQLite's own limit for one check
_COUNTED: Final = ("sessions", "messages", "memory_entries")


class IndexFault(msgspec.Struct, frozen=True):
    """A search index that does not say what its rows say; ``rows`` are wrong, or None: damaged."""

    name: str
    rows: int | None


class TableCount(msgspec.Struct, frozen=True):
    """How many rows a table has."""

    name: str
    rows: int


class Checked(msgspec.Struct, frozen=True):
    """What a check found; only index faults can be repaired.

    ``counts`` has each table that can be read.
    """

    version: int
    counts: tuple[TableCount, ...]
    problems: tuple[str, ...]
    index_faults: tuple[IndexFault, ...]

    @property
    def is_sound(self) -> bool:
        """Nothing is wrong."""
        return not self.problems and not self.index_faults


def check(path: Path, settings: StoreSettings) -> Checked:
    """Check the whole database as it is at one moment.

    Reads everything, so it takes about as long as filling the indexes anew.
    Raises UnusableDatabaseError for a file that is no database of this product.
    """
    contents = opening.inspect(path, settings)
    if contents.kind != "store":
        raise UnusableDatabaseError(f"{path} holds nothing to check: start the server once")
    try:
        with closing(open_beside(path, settings)) as connection:
            _show_tokens(connection)
            # Never ended by a statement, which would fail on a damaged database.
            connection.execute("BEGIN")
            return _check(connection, contents.version)
    except apsw.Error as error:
        raise opening.unusable(path, error) from error


def repair(connection: apsw.Connection) -> None:
    """Drop both search indexes and fill them anew from the rows."""
    for index in INDEXES:
        with transaction(connection):
            index.refill(connection)


def _check(connection: apsw.Connection, version: int) -> Checked:
    found = [*_integrity(connection), *_orphans(connection)]
    damaged = [
        index
        for index in INDEXES
        if not index.is_readable(connection) or any(index.name in text for text in found)
    ]
    traces = [index.name for index in damaged] + ["fts5"] * bool(damaged)
    problems = [text for text in found if not any(trace in text for trace in traces)]
    faults = [IndexFault(index.name, None) for index in damaged]
    if not problems:
        compared = [index for index in INDEXES if index not in damaged]
        faults += [fault for index in compared if (fault := _compare(connection, index))]
    return Checked(version, tuple(_counts(connection)), tuple(problems), tuple(faults))


def _integrity(connection: apsw.Connection) -> Iterator[str]:
    try:
        rows = connection.execute(f"PRAGMA integrity_check({_PROBLEMS_MAX})")
        yield from (str(text) for (text,) in rows if text != "ok")
    except (apsw.CorruptError, apsw.SQLError) as error:
        yield str(error)


def _orphans(connection: apsw.Connection) -> Iterator[str]:
    try:
        for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
            yield f"row {row} of {table} refers to a missing row of {parent}"
    except apsw.CorruptError as error:
        yield str(error)


def _counts(connection: apsw.Connection) -> Iterator[TableCount]:
    for table in _COUNTED:
        with suppress(apsw.CorruptError):
            yield TableCount(table, first_value(connection, f"SELECT count(*) FROM {table}"))


def _show_tokens(connection: apsw.Connection) -> None:
    """Make a temporary view of every token of the indexes, which is no write to the database."""
    connection.pragma("query_only", value=False)
    for index in INDEXES:
        connection.execute(
            f"CREATE VIRTUAL TABLE temp.{index.name}_tokens "
            f"USING fts5vocab(main, {index.name}, instance)"
        )
    connection.pragma("query_only", value=True)


def _compare(connection: apsw.Connection, index: TextIndex) -> IndexFault | None:
    """Index the rows again, in a temporary database, and compare every token."""
    try:
        with closing(apsw.Connection("")) as fresh:
            return _compare_with(connection, fresh, index)
    except (apsw.CorruptError, apsw.SQLError):
        # It is missing, or FTS5 cannot read it.
        return IndexFault(index.name, None)


def _compare_with(
    connection: apsw.Connection, fresh: apsw.Connection, index: TextIndex
) -> IndexFault | None:
    for each in INDEXES:
        fresh.execute(each.schema)
    _show_tokens(fresh)
    fresh.pragma("query_only", value=False)
    with fresh:
        index.fill(connection, fresh)
    wrong = set(_differences(_tokens(connection, index), _tokens(fresh, index)))
    wrong.update(_differences(_sizes(connection, index), _sizes(fresh, index)))
    return IndexFault(index.name, len(wrong)) if wrong else None


def _tokens(connection: apsw.Connection, index: TextIndex) -> Iterator[tuple[Any, int]]:
    # FTS5 ends a token at 32,768 bytes, within a code point too.
    columns = 'CAST(term AS BLOB), doc, "offset"'
    rows = connection.execute(f"SELECT {columns} FROM temp.{index.name}_tokens")
    return ((row, row[1]) for row in rows)


def _sizes(connection: apsw.Connection, index: TextIndex) -> Iterator[tuple[Any, int]]:
    rows = connection.execute(f"SELECT id, sz FROM {index.name}_docsize ORDER BY id")
    return ((row, row[0]) for row in rows)


def _differences(
    left: Iterator[tuple[Any, int]], right: Iterator[tuple[Any, int]]
) -> Iterator[int]:
    """Merge two streams of (key, row), ordered by key, and yield the row of what only one has."""
    a, b = next(left, None), next(right, None)
    while a is not None or b is not None:
        if b is None or (a is not None and a[0] < b[0]):
            a, only = next(left, None), a
        elif a is None or b[0] < a[0]:
            b, only = next(right, None), b
        else:
            a, b = next(left, None), next(right, None)
            continue
        if only is not None:
            yield only[1]
