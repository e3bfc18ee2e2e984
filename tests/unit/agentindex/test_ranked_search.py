"""RANKED search line by line (behaviour B7, A3.4)."""

from __future__ import annotations

import pytest

from flue_grpc import limits
from flue_grpc.agentindex import ranked_search
from flue_grpc.agentindex.ranked_query import Ranking
from flue_grpc.agentindex.ranked_search import RankedCursor
from flue_grpc.errors import (
    BadQueryError,
    CancelledError,
    DeadlineError,
    EmptyQueryError,
    QueryTooLongError,
)
from flue_grpc.listing import Pause, Placed, Stop
from tests.unit.agentindex.logs import SECOND
from tests.unit.agentindex.talks import Desk, Stopper, pages, talk
from tests.unit.text.nasty_queries import NASTY


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


@pytest.mark.parametrize("error", [CancelledError, DeadlineError])
def test_a_search_that_is_called_off_stops_anywhere(desk, monkeypatch, error):
    monkeypatch.setattr(limits, "SQL_PROGRESS_STEPS", 10)
    desk.write("a/x", *[talk(f"red {n}") for n in range(50)])
    desk.settle()
    whole = desk.hits("red", limit=1000)  # statements are prepared now, which takes steps too
    asked = Stopper(10**9)
    assert desk.hits("red", cancel=asked, limit=1000) == whole
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


def test_common_words_are_not_sorted_by_the_database(desk, monkeypatch):
    lines = [talk("red " + "pad " * n, t=n) for n in range(300)]
    desk.write("a/x", *lines)
    desk.settle()
    monkeypatch.setattr(Ranking, "_sorted", lambda _: pytest.fail("the near rows should do"))
    steps = desk.steps("red", limit=3)
    expected = [number * SECOND for number in (48, 47, 46)]
    assert [next(steps).item.ts for _ in range(3)] == expected
    steps.close()
