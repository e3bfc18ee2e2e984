"""SearchMessages (behaviour A3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc import limits
from flue_grpc.listing import Placed
from flue_grpc.store import message_rows, ranked
from flue_grpc.store.connections import Row, first_row, first_value
from flue_grpc.store.ranked import Given, Match
from flue_grpc.store.sessions import IS_SUBAGENT, is_subagent
from flue_grpc.store.text_index import MESSAGE_INDEX
from flue_grpc.store.values import Message, SearchResult
from flue_grpc.transactions import transaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import apsw

    from flue_grpc.cancel import Cancel
    from flue_grpc.store.ranked import SearchCursor
    from flue_grpc.store.readers import Readers
    from flue_grpc.store.values import MessageQuery

_CONTENT: Final = "SELECT content FROM messages WHERE id = ?"
_WINDOWS: Final = f"""
    WITH match AS MATERIALIZED (
        SELECT m.id, m.session_id,
            (SELECT min(id) FROM (SELECT id FROM messages
                WHERE session_id = m.session_id AND id <= m.id
                ORDER BY id DESC LIMIT ?2 + 1)) AS first,
            (SELECT max(id) FROM (SELECT id FROM messages
                WHERE session_id = m.session_id AND id >= m.id
                ORDER BY id LIMIT ?2 + 1)) AS last
        FROM json_each(?1) CROSS JOIN messages AS m ON m.id = value)
    SELECT match.id, w.* FROM match CROSS JOIN (
        SELECT {message_rows.WINDOW_COLUMNS} FROM messages) AS w
        ON w.session_id = match.session_id AND w.id BETWEEN match.first AND match.last"""
_ENCODER: Final = msgspec.json.Encoder()
_FIRST_PAGE: Final = 10
_PAGE: Final = 16  # windows of large texts take memory


def search_messages(
    readers: Readers, query: MessageQuery, after: SearchCursor | None, limit: int, cancel: Cancel
) -> Iterator[Placed[SearchResult]]:
    """Yield at most ``limit`` matches, best first, each with its window.

    Messages that came after the first response are left out. Raises
    EmptyQueryError when the query is blank, QueryTooLongError above 8 KiB.
    """
    planned = ranked.plan(query.query)
    if planned is None:
        return
    moment = _last_id(readers, cancel) if after is None else after.moment
    search = _search(query, moment, cancel)
    given, left, is_all = Given(moment, after), limit, False
    size = _FIRST_PAGE
    while left and not is_all:
        with readers.reading(cancel) as connection, transaction(connection):
            matches = ranked.matches(connection, planned, search, left, given)
        # Of those some may be gone before they are loaded; then others take their place.
        is_all = len(matches) < left
        while matches:
            with readers.reading(cancel) as connection:
                results, taken = _page(connection, query, matches[:size], cancel)
            given.taken.update(match.scored.id for match in matches[:taken])
            for match, result in results:
                yield Placed(result, given.cursor(match))
            left -= len(results)
            del matches[:taken]
            size = _PAGE


def _last_id(readers: Readers, cancel: Cancel) -> int:
    with readers.reading(cancel) as connection:
        last: int = first_value(connection, "SELECT ifnull(max(id), 0) FROM messages")
    return last


def _search(query: MessageQuery, moment: int, cancel: Cancel) -> ranked.Search:
    conditions = [f"{MESSAGE_INDEX.name} MATCH ?", "m.id <= ?"]
    bindings: Row = (moment,)
    if query.session_id:
        conditions.append("m.session_id = ?")
        bindings += (query.session_id,)
    if query.scope != "all":
        conditions.append(f"NOT (SELECT {IS_SUBAGENT} FROM sessions WHERE id = m.session_id)")
    # A cross join is read in this order: the index would be asked once for each message else.
    sql = f"""SELECT bm25({MESSAGE_INDEX.name}) AS score, m.created_at, m.id
        FROM {MESSAGE_INDEX.name} CROSS JOIN messages AS m ON m.id = {MESSAGE_INDEX.name}.rowid
        WHERE {" AND ".join(conditions)} ORDER BY score"""
    return ranked.Search(sql, bindings, _CONTENT, cancel)


class _Loaded(msgspec.Struct, frozen=True):
    """A match with its row and the title of its session."""

    match: Match
    row: Row
    title: str


def _page(
    connection: apsw.Connection, query: MessageQuery, matches: Sequence[Match], cancel: Cancel
) -> tuple[list[tuple[Match, SearchResult]], int]:
    """Load the first of ``matches``, those that are still there; say how many were taken."""
    with transaction(connection):
        loaded, taken = _load(connection, query, matches)
        ids = [each.match.scored.id for each in loaded]
        windows = _windows(connection, ids, query.window, cancel)
    results = [
        (each.match, _result(each, windows.get(number, ())))
        for number, each in zip(ids, loaded, strict=True)
    ]
    return results, taken


def _result(loaded: _Loaded, window: tuple[Message, ...]) -> SearchResult:
    message = message_rows.message(loaded.row)
    is_sub = is_subagent(loaded.title)
    return SearchResult(message, loaded.title, is_sub, window, loaded.match.scored.score)


def _load(
    connection: apsw.Connection, query: MessageQuery, matches: Sequence[Match]
) -> tuple[list[_Loaded], int]:
    sql = f"""SELECT (SELECT title FROM sessions WHERE id = session_id),
            {message_rows.COLUMNS[query.images]}
        FROM messages WHERE id = ?"""
    loaded: list[_Loaded] = []
    total = taken = 0
    for match in matches:
        taken += 1
        row = first_row(connection, sql, (match.scored.id,))
        if row is None:
            continue
        loaded.append(_Loaded(match, row[1:], row[0]))
        total += message_rows.row_size(row[1:]) + len(row[0])
        if total >= limits.READ_BATCH_BYTES:
            break
    return loaded, taken


def _windows(
    connection: apsw.Connection, ids: list[int], window: int, cancel: Cancel
) -> dict[int, tuple[Message, ...]]:
    """Read the windows of all matches in one query."""
    if not window or not ids:
        return {}
    rows = connection.execute(_WINDOWS, (_ENCODER.encode(ids).decode(), window))
    made: dict[int, Message] = {}
    windows: dict[int, list[Message]] = {}
    for match, *row in rows:
        # Tool calls take longer than the SQL that is interrupted by itself.
        cancel.check()
        number = row[0]
        if number not in made:
            made[number] = message_rows.window_message(tuple(row))
        windows.setdefault(match, []).append(made[number])
    return {match: tuple(sorted(found, key=_id)) for match, found in windows.items()}


def _id(message: Message) -> int:
    return message.id
