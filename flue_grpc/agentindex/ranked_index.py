"""The RANKED index: which messages hold which words, without their text (techniques §2).

One contentless FTS5 table in the index file has one row per message that has text. A
row's number is ordinal << 14 | message: an ordinal stands for a transcript, or for the
next 2^14 messages of a longer one. Beside it stands where each message lies in its file
and what a search filters and orders by. Filling order never shows in an answer.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, get_args

import msgspec

from flue_grpc.agentindex.damage import as_written
from flue_grpc.agentindex.escapes import KnownEscapes
from flue_grpc.agentindex.index_file import SchemaPart
from flue_grpc.agentindex.values import Kind, Role
from flue_grpc.limits import RANKED_HASH_BYTES, RANKED_PURGE_MESSAGES
from flue_grpc.text.tokenizer import TOKENIZER

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw

    from flue_grpc.agentindex.records import Entry

MESSAGE_BITS: Final = 14
"""Few, since FTS5 keeps the distances between rows: 20 make the index 4 % larger."""

_LAST_ORDINAL: Final = 2**26  # a search holds a byte for each

# Raise the number when a table here or the index form of text changes.
RANKED_TABLES: Final = SchemaPart(
    "ranked 3",
    f"""
create virtual table ranked_index using fts5(
  text, content='', contentless_delete=1, tokenize="{TOKENIZER}"
);
insert into ranked_index(ranked_index, rank) values('hashsize', {RANKED_HASH_BYTES});
create table ranked_messages(
  id integer primary key,
  offset integer not null,
  line_index integer not null,
  ts integer,
  sort integer not null,
  fill integer not null
);
create table ranked_parts(
  ordinal integer primary key autoincrement,
  tid integer not null,
  messages integer not null,
  tail integer not null,
  until integer not null,
  size integer not null,
  kinds integer not null,
  mirror integer not null,
  newest integer
);
create index ranked_parts_by_tid on ranked_parts(tid);
create table ranked_fills(epoch integer not null, number integer not null);
insert into ranked_fills values(random(), 0);
""",
)

_SORTS: Final = {
    (role, kind): number
    for number, (role, kind) in enumerate(
        (role, kind) for role in get_args(Role) for kind in get_args(Kind)
    )
}


class Part(msgspec.Struct, frozen=True, array_like=True):
    """What is indexed of one transcript under one ordinal.

    Rows 0 to ``messages`` are of the lines before ``until``, ``tail`` more of the whole
    objects of an unterminated last line. ``size`` is how large the file was. Only the
    last part of a transcript tells how far it is. ``kinds`` are the escapes before
    ``until``, ``mirror`` is what the parser took for granted (``Context.mirror``). No
    message here has a later time than ``newest``; None means that none has any.
    """

    ordinal: int
    tid: int
    messages: int = 0
    tail: int = 0
    until: int = 0
    size: int = 0
    kinds: int = 0
    mirror: bool = False
    newest: int | None = None

    @property
    def escapes(self) -> KnownEscapes:
        """What a search for literal text may rely on."""
        return KnownEscapes(self.kinds, self.until)

    def covers(self, entry: Entry) -> bool:
        """Whether all that the sweep has seen of the transcript is indexed."""
        summary, standing = entry.record.summary, entry.record.standing
        is_same = self.mirror == standing.mirror
        return summary is None or (is_same and self.size >= summary.file_size)


_SAVE_PART: Final = (
    f"update ranked_parts set {', '.join(f'{name} = ?' for name in Part.__struct_fields__[1:])} "
    "where ordinal = ?"
)


class State(msgspec.Struct, frozen=True, array_like=True):
    """Which index this is, and the number of its last fill: the same state, the same rows."""

    epoch: int
    number: int


def sort_of(role: Role, kind: Kind) -> int:
    """Return the number under which a message of ``role`` and ``kind`` is filtered."""
    return _SORTS[role, kind]


def sorts_of(roles: tuple[Role, ...], kinds: tuple[Kind, ...]) -> tuple[int, ...]:
    """Return the numbers that pass a filter, where an empty tuple filters nothing."""
    return tuple(
        number
        for (role, kind), number in _SORTS.items()
        if (not roles or role in roles) and (not kinds or kind in kinds)
    )


def load_state(db: apsw.Connection) -> State:
    """Return the present state. Raises apsw.Error."""
    with as_written():
        row = db.execute("select epoch, number from ranked_fills").fetchall()[0]
        return msgspec.convert(row, State)


def load_parts(db: apsw.Connection) -> dict[int, list[Part]]:
    """Return the parts of each transcript, by tid, in the order of their messages."""
    parts: dict[int, list[Part]] = {}
    for row in db.execute("select * from ranked_parts order by ordinal").fetchall():
        part = _part(row)
        parts.setdefault(part.tid, []).append(part)
    return parts


def load_last_part(db: apsw.Connection, tid: int) -> Part | None:
    """Return the part that tells how far a transcript is indexed."""
    query = "select * from ranked_parts where tid = ? order by ordinal desc limit 1"
    rows = db.execute(query, (tid,)).fetchall()
    return _part(rows[0]) if rows else None


def new_part(db: apsw.Connection, tid: int, kinds: int) -> Part:
    """Give the transcript its next ordinal; nothing is indexed under it yet."""
    db.execute("insert into ranked_parts values(null, ?, 0, 0, 0, 0, ?, 0, null)", (tid, kinds))
    return _part((db.last_insert_rowid(), tid, 0, 0, 0, 0, kinds))


def _part(row: object) -> Part:
    with as_written():
        part = msgspec.convert(row, Part, strict=False)
        if not 0 < part.ordinal <= _LAST_ORDINAL:
            raise ValueError("an ordinal out of range")
        return part


def save_part(db: apsw.Connection, part: Part) -> None:
    """Write how far a transcript is.

    An update, since a statement that may have to be undone by itself, as ``insert or
    replace`` may, makes FTS5 write out what it holds: a segment for each portion.
    """
    row = msgspec.structs.astuple(part)
    db.execute(_SAVE_PART, (*row[1:], part.ordinal))


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[int]:
    """Write in one transaction, the next fill, whose number is lent. Raises apsw.BusyError."""
    db.execute("begin immediate")
    try:
        db.execute("update ranked_fills set number = number + 1")
        yield load_state(db).number
        db.execute("commit")
    except BaseException:
        if db.in_transaction:
            db.execute("rollback")
        raise


def purge(db: apsw.Connection, tid: int) -> bool:
    """Forget some messages of a transcript in one transaction; True when none is left.

    The rows at the end go first, so that what is left is whole but shorter.
    """
    with transaction(db):
        part = load_last_part(db, tid)
        if part is None:
            return True
        end = part.messages + part.tail
        start = max(0, end - RANKED_PURGE_MESSAGES)
        delete_rows(db, part.ordinal, start, end)
        if start:
            update = "update ranked_parts set messages = ?, tail = 0 where ordinal = ?"
            db.execute(update, (start, part.ordinal))
        else:
            db.execute("delete from ranked_parts where ordinal = ?", (part.ordinal,))
        return not start and load_last_part(db, tid) is None


def delete_rows(db: apsw.Connection, ordinal: int, start: int, end: int) -> None:
    """Delete the messages ``[start, end)`` of an ordinal."""
    if start < end:
        bounds = (ordinal << MESSAGE_BITS | start, ordinal << MESSAGE_BITS | end - 1)
        db.execute("delete from ranked_index where rowid between ? and ?", bounds)
        db.execute("delete from ranked_messages where id between ? and ?", bounds)


def merge_some(db: apsw.Connection, pages: int) -> bool:
    """Merge about ``pages`` of the index's b-trees; False when nothing is left to merge.

    Begin with a negative number, go on with positive ones.
    """
    before = db.total_changes()
    db.execute("insert into ranked_index(ranked_index, rank) values('merge', ?)", (pages,))
    # SQLite counts the command itself as one change.
    return db.total_changes() - before > 1
