"""The ranking of RANKED search: one rule, whichever way it takes (behaviour A3.4)."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flue_grpc.agentindex import ranked_query
from flue_grpc.agentindex.ranked_index import RANKED_TABLES
from flue_grpc.agentindex.ranked_query import Ranking
from flue_grpc.agentindex.ranked_scope import Ordinals, Scope
from flue_grpc.text.ranking import Scored, is_tie

ROWS = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 12), st.none() | st.integers(0, 5)),
    min_size=1,
    max_size=30,
)


@given(
    ROWS,
    st.integers(1, 12),
    st.sampled_from([(), (0,), (1, 2)]),
    st.booleans(),
    st.sampled_from([(1, 8), (64, 8), (1, 100), (64, 2)]),
)
@example([(1, 4, 0), (2, 9, None), (3, 6, 2), (3, 12, 3)], 3, (), True, (64, 8))  # a run is cut
@example([(1, 0, number % 6) for number in range(12)], 2, (), True, (64, 8))  # too many are near
@settings(max_examples=100, deadline=None)
def test_ranking_is_the_rule_whichever_way_it_takes(rows, size, sorts, is_open, bounds):
    db = ranked_db(rows)
    ordinals = FewOrdinals(db)
    scope = Scope(None if is_open else ordinals.odd, sorts)
    expected = by_the_rule(db, scope)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranked_query, "_ROWS", (2, 5, -1))
        patch.setattr(ranked_query, "RANKED_NEAR_ROWS", bounds[1])
        patch.setattr(ranked_query, "RANKED_HALVES_SAMPLE", bounds[0])
        patch.setattr(ranked_query, "RANKED_SAMPLE", 2)
        found = Ranking(db, Alone(), "red", scope, ordinals).best(size)
    assert [(match.score, match.id) for match in found] == expected[:size]


class Alone:
    """Asks both halves of the one connection there is."""

    def both(self, db, first, second):
        return first(db) + second(db)


class FewOrdinals(Ordinals):
    """Ordinals of no session, in the order of their numbers."""

    def __init__(self, db):
        self.last = db.execute("select max(id) >> 14 from ranked_messages").get
        self.middle = (self.last + 1) // 2
        self.odd = bytes(ordinal % 2 for ordinal in range(self.last + 1))
        query = "select id >> 14, max(coalesce(ts, -99)) from ranked_messages group by 1"
        self.times = dict(db.execute(query))

    def newest(self, row):
        return self.times[row >> 14]

    def order(self, row):
        return row

    def row(self, order):
        return order


def by_the_rule(db, scope):
    query = "select bm25(ranked_index), rowid from ranked_index where ranked_index match 'red'"
    scored = sorted(db.execute(query).fetchall())
    details = {row[0]: row[3:5] for row in db.execute("select * from ranked_messages")}
    rows = [
        Scored(score, -(2**62) if details[row][0] is None else details[row][0], row)
        for score, row in scored
        if (scope.ordinals is None or (row >> 14) % 2)
        and (not scope.sorts or details[row][1] in scope.sorts)
    ]
    runs = []
    for row in rows:
        if not runs or not is_tie(runs[-1][0].score, row.score):
            runs.append([])
        runs[-1].append(row)
    ordered = [sorted(run, key=lambda row: (row.when, row.id), reverse=True) for run in runs]
    return [(row.score, row.id) for run in ordered for row in run]


def ranked_db(rows):
    """Fill a table with rows of (ordinal, words beside the one looked for, time)."""
    db = apsw.Connection(":memory:")
    db.execute(RANKED_TABLES.sql)
    for number, (ordinal, others, ts) in enumerate(rows):
        row = ordinal << 14 | number
        text = "red " + "pad " * others
        db.execute("insert into ranked_index(rowid, text) values(?, ?)", (row, text))
        values = (row, 0, 0, ts, number % 3, 1)
        db.execute("insert into ranked_messages values(?, ?, ?, ?, ?, ?)", values)
    return db
