"""RANKED search line by line (behaviour B7, A3.4)."""

from __future__ import annotations

import os

import apsw
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flue_grpc import limits
from flue_grpc.agentindex import ranked_query, ranked_search
from flue_grpc.agentindex.ranked_index import RANKED_TABLES
from flue_grpc.agentindex.ranked_query import Ranking
from flue_grpc.agentindex.ranked_scope import Ordinals, Scope
from flue_grpc.agentindex.ranked_search import RankedCursor
from flue_grpc.errors import (
    BadQueryError,
    CancelledError,
    DeadlineError,
    EmptyQueryError,
    QueryTooLongError,
)
from flue_grpc.listing import Pause, Placed, Stop
from flue_grpc.text.ranking import Scored, is_tie
from tests.unit.agentindex.logs import SECOND
from tests.unit.agentindex.talks import Desk, pages, talk
from tests.unit.text.nasty_queries import NASTY


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path)
    yield desk
    desk.close()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """Some sessions that no test changes."""
    desk = Desk(tmp_path_factory.mktemp("shelf"))
    desk.write(
        "a/x",
        talk("the quick brown fox", t=10),
        talk("quick thinking", role="assistant", kind="thinking", t=20),
        talk('{"command":"quick"}', role="assistant", kind="tool_call"),
        talk("SQLite锁住数据库文件", t=30),
    )
    desk.write("b/x~sub", talk("a quick subagent", t=15))
    desk.write("b/y", talk("nothing here", t=40), talk("foo-bar don't prefixes", t=50))
    desk.write("b/quiet", talk("quick but system", system=True, role="system"))
    desk.home.write("old/b/y.jsonl", talk("quick loser"))
    desk.home.write("logs/b/none.jsonl", talk("quick none"))
    desk.settle()
    yield desk
    desk.close()


class TestLanguage:
    @pytest.mark.parametrize(
        ("query", "ids"),
        [
            ("quick fox", ["x"]),
            ("QUICK Brown", ["x"]),
            ('"quick brown"', ["x"]),
            ('"brown quick"', []),
            ("qui*", ["x", "x", "x"]),
            ("quick -fox", ["x", "x"]),
            ('quick -"brown fox"', ["x", "x"]),
            ("prefix", []),
            ("prefix*", ["y"]),
            ("foo-bar", ["y"]),
            ("don't", ["y"]),
            ("数据", ["x"]),
            ("库 sqlite", ["x"]),
            ("锁住数据库文件", ["x"]),
            ("锁库", []),
            ("nothing-here", ["y"]),
            ("*", []),
            ("😀 ...", []),
        ],
    )
    def test_queries(self, shelf, query, ids):
        assert sorted(hit.id for hit in shelf.hits(query)) == ids

    def test_bad_queries_are_refused_at_once(self, shelf):
        for query, error in (
            (" ", EmptyQueryError),
            ('"open', BadQueryError),
            ("-only", BadQueryError),
            ("x " * 65, QueryTooLongError),
            ("x" * 8193, QueryTooLongError),
        ):
            with pytest.raises(error):
                shelf.steps(query)

    def test_what_matches_nothing_ends_at_once(self, shelf):
        assert list(shelf.steps("*")) == [Pause(0)]
        assert list(shelf.steps("absent")) == [Pause(0)]

    def test_no_nasty_query_is_an_error(self, shelf):
        for query in NASTY:
            try:
                shelf.hits(query)
            except (BadQueryError, QueryTooLongError):
                assert '"' in query or "-" in query or len(query) > 128


class TestHits:
    def test_a_hit_tells_where_it_is(self, shelf):
        (hit,) = shelf.hits("fox")
        assert (hit.tool, hit.id, hit.cwd, hit.title) == ("logs", "x", "/a", "")
        assert (hit.role, hit.kind, hit.ts) == ("user", "text", 10 * SECOND)
        assert (hit.offset, hit.index) == (0, 0)
        assert (hit.snippet, hit.ranges, hit.text_offset) == (
            "the quick brown fox",
            ((16, 19),),
            16,
        )
        assert hit.score < 0

    def test_ranges_and_offsets_are_in_bytes_of_the_text(self, desk):
        desk.write("a/x", talk("é\n\n日本語 — Résumé"))
        desk.settle()
        (hit,) = desk.hits("resume 本語")
        encoded = hit.snippet.encode()
        assert hit.snippet == "é 日本語 — Résumé"
        assert [encoded[a:b].decode() for a, b in hit.ranges] == ["本語", "Résumé"]
        assert hit.text_offset == len("é\n\n日".encode())

    def test_each_message_of_a_line_has_its_index(self, desk):
        desk.write("a/x", talk("one"), talk("red 0") + talk("blue 1") + talk("red 2"))
        desk.settle()
        offset = len(talk("one")) + 1
        assert desk.found("red") == [("x", offset, 2), ("x", offset, 0)]

    def test_bytes_that_were_read_are_told(self, desk):
        desk.write("a/x", talk("red"), talk("blue"), talk("red"))
        desk.settle()
        *_, last = desk.steps("blue")
        assert last == Pause(len(talk("blue") + talk("red")) + 2)


class TestFilters:
    @pytest.mark.parametrize(
        ("wanted", "texts"),
        [
            ({}, ["quick thinking", "the quick brown fox", '{"command":"quick"}']),
            ({"roles": ("user",)}, ["the quick brown fox"]),
            ({"roles": ("assistant",)}, ["quick thinking", '{"command":"quick"}']),
            ({"kinds": ("tool_call",)}, ['{"command":"quick"}']),
            ({"roles": ("user",), "kinds": ("tool_call",)}, []),
            ({"roles": ("user", "assistant"), "kinds": ("text", "thinking")}, [
                "quick thinking", "the quick brown fox",
            ]),
            ({"since": 10 * SECOND, "until": 20 * SECOND}, ["the quick brown fox"]),
            ({"since": 20 * SECOND}, ["quick thinking"]),
            ({"until": 20 * SECOND}, ["the quick brown fox"]),
            ({"tools": ("logs", "unheard")}, [
                "quick thinking", "the quick brown fox", '{"command":"quick"}',
            ]),
            ({"tools": ("unheard",)}, []),
            ({"cwd": "/a"}, ["quick thinking", "the quick brown fox", '{"command":"quick"}']),
            ({"cwd": "/b"}, []),
            ({"cwd": "/b", "include_subagents": True}, ["a quick subagent"]),
        ],
    )  # fmt: skip
    def test_filters(self, shelf, wanted, texts):
        assert sorted(shelf.texts("quick", **wanted)) == sorted(texts)

    def test_unlisted_sessions_losers_and_other_files_have_no_hits(self, shelf):
        assert shelf.hits("system", include_subagents=True) == []
        assert shelf.hits("loser", include_subagents=True) == []
        assert shelf.hits("none", include_subagents=True) == []


class TestOrder:
    def test_the_better_match_comes_first(self, desk):
        desk.write("a/x", talk("red " * 5, t=1), talk("red and much more beside it " * 5, t=9))
        desk.settle()
        assert [hit.ts for hit in desk.hits("red")] == [SECOND, 9 * SECOND]
        scores = [hit.score for hit in desk.hits("red")]
        assert scores == sorted(scores)

    def test_near_ties_are_ordered_by_recency(self, desk):
        desk.write("a/x", talk("red one", t=5), talk("red two"), talk("red six", t=1))
        desk.write("a/y", talk("red ten", t=7))
        desk.settle()
        assert desk.texts("red") == ["red ten", "red one", "red six", "red two"]

    def test_equal_times_go_by_session_then_by_place(self, desk):
        desk.write("a/y", talk("red 1", t=5), talk("red 2", t=5))
        desk.write("a/x", talk("red 3", t=5))
        desk.write("a/z", talk("red 4", t=5), talk("last", t=6))
        desk.settle()
        assert desk.texts("red") == ["red 4", "red 3", "red 2", "red 1"]


class TestPages:
    @pytest.fixture
    def full(self, desk):
        for name in "pqrst":
            lines = [talk(f"red {name} {n} " + "pad " * (n % 5), t=n * 7 % 11) for n in range(9)]
            desk.write(f"a/{name}", *lines)
        return desk.settle()

    @pytest.mark.parametrize("size", [1, 2, 3, 7, 44, 45, 46, 1000])
    def test_put_together_they_are_one_search(self, full, size):
        whole = full.hits("red", limit=1000)
        assert len(whole) == 45
        assert pages(full, "red", size) == whole

    def test_the_limit_is_no_end(self, full):
        assert full.hits("red", limit=3) == full.hits("red", limit=1000)

    def test_only_a_little_more_than_the_limit_is_read(self, full, monkeypatch):
        opened = []
        plain_open = ranked_search.open_transcript
        monkeypatch.setattr(
            ranked_search,
            "open_transcript",
            lambda path, root: opened.append(path) or plain_open(path, root),
        )
        steps = full.steps("red", limit=3)
        assert [next(steps).cursor.count for _ in range(3)] == [1, 2, 3]
        steps.close()
        assert len(opened) == 3

    def test_what_is_written_after_the_first_response_is_left_out(self, full):
        first = [step for step in full.steps("red", limit=5) if isinstance(step, Placed)][:5]
        given = {(step.item.id, step.item.offset) for step in first}
        full.write("a/new", talk("red new", t=99))
        full.append("a/p", talk("red p added", t=99))
        full.settle()
        rest = full.hits("red", after=first[-1].cursor, limit=100)
        seen = [(hit.id, hit.offset) for hit in rest]
        assert len(seen) == len(set(seen)) == 40
        assert not given & set(seen)
        assert len(full.hits("red", limit=1000)) == 47

    def test_places_survive_what_is_removed(self, full):
        first = [step for step in full.steps("red", limit=5) if isinstance(step, Placed)][:5]
        last = first[-1].item
        full.remove(f"a/{last.id}")
        full.settle()
        rest = full.hits("red", after=first[-1].cursor, limit=100)
        given = {(step.item.id, step.item.offset) for step in first}
        assert last.id not in {hit.id for hit in rest}
        assert len(rest) >= 36 - len(given)

    def test_a_place_in_an_index_that_was_made_anew_is_its_number(self, full):
        whole = full.hits("red", limit=1000)
        after = RankedCursor(epoch=12345, fill=0, count=40, row=1)
        assert full.hits("red", after=after, limit=100) == whole[40:]

    def test_a_byte_budget_stops_after_a_hit_and_goes_on(self, full):
        steps = list(full.steps("red", limit=9, max_bytes=1))
        assert [type(step) for step in steps] == [Placed, Stop]
        assert steps[1].cursor == steps[0].cursor
        assert steps[1].bytes_scanned > 0
        assert pages(full, "red", 9, max_bytes=1) == full.hits("red", limit=1000)

    def test_a_budget_that_the_last_hit_spends_is_no_stop(self, desk):
        desk.write("a/x", talk("red"))
        desk.settle()
        steps = list(desk.steps("red", max_bytes=1))
        assert [type(step) for step in steps] == [Placed, Pause]


class TestStale:
    """The transcripts changed, and no sweep has noticed yet."""

    def test_a_vanished_transcript_has_no_hits(self, desk):
        desk.write("a/x", talk("red x"))
        desk.write("a/y", talk("red y"))
        desk.settle()
        desk.remove("a/x")
        assert desk.texts("red") == ["red y"]

    def test_a_rewritten_one_has_none_that_are_wrong(self, desk):
        desk.write("a/x", talk("red x"), talk("more red"))
        desk.settle()
        path = desk.home.path / "logs/a/x.jsonl"
        content = path.read_bytes()
        with path.open("r+b") as file:
            file.seek(content.index(b"more red"))
            file.write(b"more tea")
        assert desk.texts("red") == ["red x"]
        desk.write("a/x", talk("another red"))
        assert desk.texts("red") == []

    def test_a_cut_one_has_what_is_left(self, desk):
        desk.write("a/x", talk("red x", t=2), talk("red y", t=1))
        desk.settle()
        path = desk.home.path / "logs/a/x.jsonl"
        path.write_bytes(path.read_bytes()[: len(talk("red x", t=2)) + 4])
        assert desk.texts("red") == ["red x"]

    def test_a_fifo_in_its_place_is_passed(self, desk):
        desk.write("a/x", talk("red"))
        desk.settle()
        desk.remove("a/x")
        os.mkfifo(desk.home.path / "logs/a/x.jsonl")
        assert desk.hits("red") == []

    def test_a_session_that_is_gone_from_the_list_is_passed(self, desk):
        desk.write("a/x", talk("red"))
        desk.settle()
        desk.remove("a/x")
        desk.sweep()
        assert desk.hits("red") == []

    def test_lag_shows_only_what_is_filled(self, desk):
        desk.write("a/x", talk("red 1"))
        desk.settle()
        desk.append("a/x", talk("red 2"))
        desk.write("a/y", talk("red 3"))
        desk.sweep()
        assert desk.texts("red") == ["red 1"]
        desk.fill()
        assert len(desk.hits("red")) == 3


class TestVerifying:
    def test_what_is_not_looked_up_is_verified_in_the_text(self, desk):
        run = "".join(chr(0x4E00 + n) for n in range(20))
        words = " ".join(f"w{n}" for n in range(70))
        desk.write(
            "a/x",
            talk(run, t=1),
            talk(run[:19], t=2),
            talk(f"{run[:16]} and {run[16:]}", t=3),
            talk(words.replace("w69", "w6"), t=4),
            talk(words, t=5),
        )
        desk.settle()
        assert [hit.ts for hit in desk.hits(run)] == [SECOND]
        assert [hit.ts for hit in desk.hits(f'"{words}"')] == [5 * SECOND]

    def test_excluded_phrases_are_verified_too(self, desk):
        run = "人" * 20
        desk.write("a/x", talk(f"red {run}", t=1), talk(f"red {run[1:]}", t=2))
        desk.settle()
        assert [hit.ts for hit in desk.hits(f"red -{run}")] == [2 * SECOND]

    def test_pages_of_verified_hits(self, desk):
        lines = [talk("人" * (15 + n % 9), t=n) for n in range(40)]
        desk.write("a/x", *lines)
        desk.settle()
        whole = desk.hits("人" * 18, limit=1000)
        assert len(whole) == sum(n % 9 >= 3 for n in range(40))
        assert pages(desk, "人" * 18, 3) == whole


class Stopper:
    """Says after some questions that nobody waits any more."""

    def __init__(self, patience, error=CancelledError):
        self.left = patience
        self.error = error

    def is_cancelled(self):
        self.left -= 1
        return self.left < 0

    def check(self):
        if self.is_cancelled():
            raise self.error("over")


@pytest.mark.parametrize("error", [CancelledError, DeadlineError])
def test_a_search_that_is_called_off_stops_anywhere(desk, monkeypatch, error):
    monkeypatch.setattr(limits, "SQL_PROGRESS_STEPS", 10)
    desk.write("a/x", *[talk(f"red {n}") for n in range(50)])
    desk.settle()
    asked = Stopper(10**9)
    whole = desk.hits("red", cancel=asked, limit=1000)
    questions = 10**9 - asked.left
    assert questions > 100
    for patience in (*range(40), *range(40, questions, 29)):
        with pytest.raises(error):
            desk.hits("red", cancel=Stopper(patience, error), limit=1000)
    assert desk.hits("red", cancel=Stopper(questions), limit=1000) == whole


def test_no_transaction_is_open_between_hits(desk):
    desk.write("a/x", talk("red 1"), talk("red 2"))
    desk.settle()
    steps = desk.steps("red")
    next(steps)
    db = desk.file.writer()
    db.execute("pragma wal_checkpoint(truncate)")
    db.execute("delete from ranked_messages")
    assert db.execute("pragma wal_checkpoint(truncate)").get[0] == 0
    db.close()
    assert len(list(steps)) == 2


ROWS = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 12), st.none() | st.integers(0, 5)),
    min_size=1,
    max_size=30,
)


@given(ROWS, st.integers(1, 12), st.sampled_from([(), (0,), (1, 2)]), st.booleans())
@example([(1, 4, 0), (2, 9, None), (3, 6, 2), (3, 12, 3)], 3, (), True)  # a run that is cut
@example([(1, 0, number % 6) for number in range(12)], 2, (), True)  # more near than are held
@settings(max_examples=60, deadline=None)
def test_ranking_is_the_rule_whichever_way_it_takes(rows, size, sorts, is_open):
    db = ranked_db(rows)
    ordinals = FewOrdinals(db)
    scope = Scope(None if is_open else ordinals.odd, sorts)
    expected = by_the_rule(db, scope)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranked_query, "_ROWS", (2, 5, -1))
        patch.setattr(ranked_query, "RANKED_NEAR_ROWS", 8)
        patch.setattr(ranked_query, "RANKED_SAMPLE", 2)
        found = Ranking(db, "red", scope, ordinals).best(size)
    assert [(match.score, match.id) for match in found] == expected[:size]


class FewOrdinals(Ordinals):
    """Ordinals of no session, in the order of their numbers."""

    def __init__(self, db):
        self.last = db.execute("select max(id) >> 20 from ranked_messages").get
        self.odd = bytes(ordinal % 2 for ordinal in range(self.last + 1))
        query = "select id >> 20, max(coalesce(ts, -99)) from ranked_messages group by 1"
        self.times = dict(db.execute(query))

    def newest(self, row):
        return self.times[row >> 20]

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
        if (scope.ordinals is None or (row >> 20) % 2)
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
        row = ordinal << 20 | number
        text = "red " + "pad " * others
        db.execute("insert into ranked_index(rowid, text) values(?, ?)", (row, text))
        values = (row, 0, 0, ts, number % 3, 1)
        db.execute("insert into ranked_messages values(?, ?, ?, ?, ?, ?)", values)
    return db


def test_common_words_are_not_sorted_by_the_database(desk, monkeypatch):
    lines = [talk("red " + "pad " * n, t=n) for n in range(300)]
    desk.write("a/x", *lines)
    desk.settle()
    monkeypatch.setattr(Ranking, "_sorted", lambda _: pytest.fail("the near rows should do"))
    steps = desk.steps("red", limit=3)
    expected = [number * SECOND for number in (48, 47, 46)]
    assert [next(steps).item.ts for _ in range(3)] == expected
    steps.close()
