"""Rows of the index file: loading what is asked for, writing what was parsed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, cast

import msgspec

from flue_grpc.agentindex.adapters.base import Context
from flue_grpc.agentindex.damage import as_written
from flue_grpc.agentindex.located import Checkpoints
from flue_grpc.agentindex.records import Entry, Place, Record
from flue_grpc.agentindex.values import TokenUsage
from flue_grpc.limits import LEDGER_BLOCK_ENTRIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import apsw

    from flue_grpc.agentindex.drafts import Draft

_BLOCK_BITS: Final = 24
_TAIL_BLOCK: Final = 2**_BLOCK_BITS - 1
_LAST_TID: Final = 2 ** (63 - _BLOCK_BITS) - 1
_LAST_STAMP: Final = 2**62  # far ahead, and any number of stamps may still follow

Row = tuple[int, int, bytes, bytes, bytes]

_encode = msgspec.msgpack.Encoder().encode
_decode_record = msgspec.msgpack.Decoder(Record).decode
_decode_ledger = msgspec.msgpack.Decoder(dict[int, TokenUsage]).decode
_COLUMNS: Final = "tid, changed, path, place, record"


def load_entries(db: apsw.Connection) -> Iterator[Entry]:
    """Yield every transcript in the file. Raises apsw.Error."""
    places: dict[bytes, Place] = {}
    with as_written():
        for row in db.execute(f"select {_COLUMNS} from transcripts"):
            yield _entry(cast("Row", row), places)


def load_some(db: apsw.Connection, tids: Iterable[int]) -> list[Entry]:
    """Return those of the transcripts that are in the file. Raises apsw.Error."""
    query = f"select {_COLUMNS} from transcripts where tid = ?"
    places: dict[bytes, Place] = {}
    with as_written():
        rows = (db.execute(query, (tid,)).fetchone() for tid in tids)
        return [_entry(cast("Row", row), places) for row in filter(None, rows)]


def load_stamps(db: apsw.Connection) -> dict[int, int]:
    """Return ``Entry.changed`` of every transcript by its tid."""
    return dict(db.execute("select tid, changed from transcripts"))


def next_tid(db: apsw.Connection) -> int:
    """Return the lowest tid that was never used. Raises apsw.Error."""
    given = db.execute("select seq from sqlite_sequence where name = 'transcripts'").get
    highest = db.execute("select max(tid) from transcripts").get
    with as_written():
        return _checked_tid(max(given or 0, highest or 0) + 1)


def load_state(db: apsw.Connection, entry: Entry) -> bytes | None:
    """Return the parser state that belongs to ``entry``, None when the file has another."""
    query = "select state from states where tid = ? and changed = ?"
    state: bytes | None = db.execute(query, (entry.tid, entry.changed)).get
    return state


def load_block(db: apsw.Connection, tid: int, number: int) -> bytes | None:
    """Return one block of usage."""
    place = tid << _BLOCK_BITS | number
    data: bytes | None = db.execute("select data from usage where id = ?", (place,)).get
    return data


def load_blocks(db: apsw.Connection, after: int, limit: int) -> list[tuple[int, int, bytes]]:
    """Return (id, tid, block) of all transcripts in order, after an id; 0 is the start."""
    query = "select id, data from usage where id > ? order by id limit ?"
    return [
        (place, place >> _BLOCK_BITS, data) for place, data in db.execute(query, (after, limit))
    ]


def load_ledger_entry(db: apsw.Connection, tid: int, key: int) -> TokenUsage | None:
    """Return what a transcript has counted under ``key``."""
    query = "select input, output, cache_read, cache_write from ledger where tid = ? and key = ?"
    row = db.execute(query, (tid, key)).fetchone()
    if row:
        with as_written():
            return TokenUsage(*msgspec.convert(row, tuple[int, int, int, int]))
    query = "select entries from ledger_blocks where tid = ? and first <= ? order by first desc"
    block: bytes | None = db.execute(query + " limit 1", (tid, key)).get
    with as_written():
        return None if block is None else _decode_ledger(block).get(key)


def load_checkpoints(db: apsw.Connection, entry: Entry) -> Checkpoints:
    """Return the checkpoints of a transcript. Raises apsw.Error."""
    standing = entry.record.standing
    query = "select offset, model from checkpoints where tid = ? order by offset"
    with as_written():
        stored = db.execute(query, (entry.tid,)).fetchall()
        rows = [(0, ""), *msgspec.convert(stored, list[tuple[int, str]])]
    return Checkpoints(
        offsets=tuple(offset for offset, _ in rows),
        contexts=tuple(Context(model, standing.mirror) for _, model in rows),
        exact_until=standing.offset
        if standing.trail.exact_until is None
        else standing.trail.exact_until,
        end=standing.offset,
    )


def write_tables(db: apsw.Connection, draft: Draft) -> None:
    """Write what a draft has gathered so far."""
    tid = draft.tid
    db.executemany(
        "insert or replace into usage values(?, ?)",
        [(tid << _BLOCK_BITS | number, data) for number, data in draft.blocks.items()],
    )
    db.executemany(
        "insert or replace into checkpoints values(?, ?, ?)",
        [(tid, offset, model) for offset, model in draft.checkpoints],
    )
    fresh = draft.ledger.fresh
    if draft.ledger.is_whole:
        _write_ledger_blocks(db, tid, fresh)
        return
    db.executemany(
        "insert or replace into ledger values(?, ?, ?, ?, ?, ?)",
        [
            (tid, key, usage.input, usage.output, usage.cache_read, usage.cache_write)
            for key, usage in sorted(fresh.items())
        ],
    )


def _write_ledger_blocks(db: apsw.Connection, tid: int, entries: Mapping[int, TokenUsage]) -> None:
    """Write the first entries of a transcript; a row each would be most of a cold sweep's writing.

    Later entries get rows, which go before the blocks.
    """
    keys = sorted(entries)
    places = range(0, len(keys), LEDGER_BLOCK_ENTRIES)
    blocks = [keys[place : place + LEDGER_BLOCK_ENTRIES] for place in places]
    db.executemany(
        "insert or replace into ledger_blocks values(?, ?, ?)",
        [(tid, block[0], _encode({key: entries[key] for key in block})) for block in blocks],
    )


def write_draft(db: apsw.Connection, draft: Draft) -> None:
    """Write a finished draft in the open transaction."""
    entry = draft.entry
    if entry is None:
        raise ValueError("the draft is not finished")
    if draft.replaces is not None:
        remove(db, draft.replaces)
    write_tables(db, draft)
    tail = draft.tid << _BLOCK_BITS | _TAIL_BLOCK
    if draft.tail:
        db.execute("insert or replace into usage values(?, ?)", (tail, draft.tail))
    else:
        db.execute("delete from usage where id = ?", (tail,))
    db.execute(
        "insert or replace into transcripts values(?, ?, ?, ?, ?)",
        (
            entry.tid,
            entry.changed,
            os.fsencode(entry.path),
            _save_place(entry.place),
            _encode(entry.record),
        ),
    )
    state = (entry.tid, entry.changed, draft.state)
    db.execute("insert or replace into states values(?, ?, ?)", state)


def remove(db: apsw.Connection, tid: int) -> None:
    """Remove a transcript and all that is kept of it."""
    db.execute("delete from transcripts where tid = ?", (tid,))
    db.execute(
        "delete from usage where id between ? and ?",
        (tid << _BLOCK_BITS, tid << _BLOCK_BITS | _TAIL_BLOCK),
    )
    db.execute("delete from states where tid = ?", (tid,))
    db.execute("delete from checkpoints where tid = ?", (tid,))
    db.execute("delete from ledger_blocks where tid = ?", (tid,))
    db.execute("delete from ledger where tid = ?", (tid,))


def _entry(row: Row, places: dict[bytes, Place]) -> Entry:
    tid, changed, path, place, record = row
    if place not in places:
        places[place] = _load_place(place)
    if not 0 < changed <= _LAST_STAMP:
        raise ValueError("a stamp out of range")
    return Entry(
        _checked_tid(tid), os.fsdecode(path), places[place], _decode_record(record), changed
    )


def _checked_tid(tid: int) -> int:
    if not 0 < tid <= _LAST_TID:
        raise ValueError("a tid out of range")
    return tid


def _save_place(place: Place) -> bytes:
    return _encode((place.tool, place.kind, os.fsencode(place.root), place.is_linked))


def _load_place(data: bytes) -> Place:
    row = msgspec.msgpack.decode(data, type=tuple[str, str, bytes, bool])
    tool, kind, root, is_linked = row
    return Place(tool, kind, os.fsdecode(root), is_linked)
