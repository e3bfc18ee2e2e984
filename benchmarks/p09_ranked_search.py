"""P9: RANKED search of a million messages, against FTS5 asked directly over the same index."""

from __future__ import annotations

from functools import partial
from itertools import islice
from statistics import median
from threading import Event
from typing import TYPE_CHECKING

import apsw
from harness import Goal, absolute, compare, interleave, seconds
from ranked_homes import ranked_home

from flue_grpc.agentindex.hit_filter import HitFilter
from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.ranked_search import RankedSearch
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.cancel import NEVER
from flue_grpc.listing import Placed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness import Figure, Scale

_LIMIT = 20
_MATCH = "from ranked_index where ranked_index match ?"


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield the latencies of rare and of common words; the index is kept between runs."""
    messages = scale.pick(1_000_000, 20_000)
    path = ranked_home(scale.work, messages)
    directory = scale.work / f"{path.name}-index"
    settings = IndexSettings(home=str(path), directory=directory, sweep_interval=3600)
    with AgentIndex.open(settings) as index:
        _wait(index)
        (file,) = directory.rglob("*.db")
        db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
        rare = _words(db, messages, 0.001, 0.01)
        common = _words(db, messages, 0.1, 0.4)
        yield from _compare_rare(scale, partial(_search, index), db, rare)
        yield from _compare_common(scale, partial(_search, index), db, common)
        db.close()


def _compare_rare(
    scale: Scale, search: Callable[[str], object], db: apsw.Connection, words: list[str]
) -> Iterator[Figure]:
    ranked = f"select rowid {_MATCH} order by rank limit {_LIMIT}"
    ours, direct = interleave(
        scale.rounds,
        ("Search", "ms", lambda: _p50(search, words)),
        ("FTS5", "ms", lambda: _p50(partial(_ask, db, ranked), words)),
    )
    yield absolute(Goal("P9", f"{len(words)} words in 0.1 to 1 %, p50", "at most", 10.0), ours)
    yield compare(Goal("P9", "the same against `order by rank`", "at most", 5.0), ours, direct)


def _compare_common(
    scale: Scale, search: Callable[[str], object], db: apsw.Connection, words: list[str]
) -> Iterator[Figure]:
    ranked = f"select rowid {_MATCH} order by rank limit {_LIMIT}"
    ours, counted, direct = interleave(
        scale.rounds,
        ("Search", "ms", lambda: _p50(search, words)),
        ("count(*)", "ms", lambda: _p50(partial(_ask, db, f"select count(*) {_MATCH}"), words)),
        ("FTS5", "ms", lambda: _p50(partial(_ask, db, ranked), words)),
    )
    what = f"{len(words)} words in 10 to 40 %, p50"
    yield compare(Goal("P9", f"{what}, against `count(*)`", "at most", 20.0), ours, counted)
    yield compare(Goal("P9", f"{what}, against `order by rank`", "at most", 0.7), ours, direct)


def _wait(index: AgentIndex) -> None:
    pause = Event()
    request = RankedSearch("w0000", HitFilter(), 1)
    while index.search_ranked(request, None, NEVER).building:
        pause.wait(0.2)


def _words(db: apsw.Connection, messages: int, low: float, high: float) -> list[str]:
    """Return words of the home that so great a part of its messages has."""
    found: list[str] = []
    for number in (*range(0, 200, 2), *range(200, 1_000, 20)):
        word = f"w{number:04x}"
        (count,) = db.execute(f"select count(*) {_MATCH}", (word,)).fetchall()[0]
        if low <= count / messages <= high:
            found.append(word)
    return found[:: max(1, len(found) // 15)]


def _p50(ask: Callable[[str], object], words: list[str]) -> float:
    return median(seconds(partial(ask, word)) for word in words) * 1000


def _search(index: AgentIndex, word: str) -> list[object]:
    view = index.search_ranked(RankedSearch(word, HitFilter(), _LIMIT), None, NEVER)
    return list(islice((step for step in view.items if isinstance(step, Placed)), _LIMIT))


def _ask(db: apsw.Connection, query: str, word: str) -> list[object]:
    return db.execute(query, (word,)).fetchall()
