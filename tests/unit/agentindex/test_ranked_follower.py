"""The RANKED index as it follows the sweep (behaviour B7)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flue_grpc import limits
from flue_grpc.agentindex import ranked_index
from flue_grpc.agentindex.escapes import Escape
from flue_grpc.agentindex.ranked_follower import RANKED
from flue_grpc.errors import CancelledError
from tests.unit.agentindex.talks import Desk, plain, talk


class TestFollower:
    def lag(self, desk):
        with desk.file.reader() as db:
            return RANKED.lag(db, desk.catalog.entries())

    def fill(self, desk):
        db = desk.file.writer()
        RANKED.fill(db, desk.catalog.entries(), desk.adapters, lambda: None)
        db.close()

    def test_lag_is_what_remains_to_be_read(self, desk):
        assert self.lag(desk) == 0
        desk.write("a/x", talk("word one"))
        desk.sweep()
        assert self.lag(desk) == len(talk("word one")) + 1
        self.fill(desk)
        assert self.lag(desk) == 0
        desk.append("a/x", talk("two"))
        desk.sweep()
        assert self.lag(desk) == len(talk("two")) + 1
        self.fill(desk)
        desk.remove("a/x")
        desk.sweep()
        assert self.lag(desk) == 1
        self.fill(desk)
        assert self.lag(desk) == 0

    def test_the_tables_are_a_part_of_the_file(self):
        assert RANKED.part.format.startswith("ranked ")
        db = apsw.Connection(":memory:")
        db.execute(RANKED.part.sql)
        assert ranked_index.load_state(db).number == 0


class TestEscapes:
    def test_kinds_are_gathered_as_far_as_the_lines_go(self, desk):
        desk.write("a/x", talk("plain"))
        desk.settle()
        part = desk.part("a/x")
        assert part.escapes.until == len(talk("plain")) + 1
        assert part.escapes.within(part.until) == Escape.NONE
        assert part.escapes.within(part.until + 1) == Escape.ANY
        desk.append("a/x", b'{"text": "\\u0041"}', tail=b'{"text": "\\u00e9"}')
        desk.settle()
        part = desk.part("a/x")
        assert part.escapes.within(part.until) == Escape.ASCII
        desk.append("a/x", tail=b"\r\n")
        desk.settle()
        part = desk.part("a/x")
        assert part.escapes.within(part.until) == Escape.ASCII | Escape.WIDE

    def test_a_search_is_told_of_each_session(self, desk):
        desk.write("a/x", b'{"text": "\\u00e9"}')
        desk.write("a/y", talk("plain"))
        desk.sweep()
        sessions = {session.summary.id: session for session in desk.catalog.view().sessions}
        escapes = desk.searches.escapes()
        assert escapes(sessions["x"]).until == 0
        desk.fill()
        escapes = desk.searches.escapes()
        assert escapes(sessions["x"]).kinds == Escape.WIDE
        assert escapes(sessions["y"]).kinds == Escape.NONE


WORDS = st.lists(st.sampled_from(["red", "blue", "red blue", "数据"]), min_size=1, max_size=3)
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "tail", "write", "remove", "mirror"]),
        st.sampled_from("xyz"),
        WORDS,
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=8,
)


def change(desk, kind, name, words, number):
    path = desk.home.path / f"logs/a/{name}.jsonl"
    lines = [talk(f"{word} {number}", t=number) for word in words]
    if kind == "write" or not path.exists():
        desk.write(f"a/{name}", *lines)
    elif kind == "append":
        desk.append(f"a/{name}", b"", *lines)
    elif kind == "tail":
        desk.append(f"a/{name}", tail=lines[0])
    elif kind == "mirror":
        desk.append(f"a/{name}", b"", talk("red", mirror=True), talk("blue echo", echo=True))
    else:
        path.unlink()


@given(CHANGES, st.integers(1, 6))
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_filling_never_shows(monkeypatch, changes, patience):
    """Whatever happened in between, an index filled in one go says the same."""
    monkeypatch.setattr(limits, "RANKED_PORTION_BYTES", 60)
    monkeypatch.setattr(limits, "RANKED_COMMIT_MESSAGES", 2)
    with tempfile.TemporaryDirectory() as base:
        desk = Desk(Path(base))
        for number, (kind, name, words, when) in enumerate(changes):
            change(desk, kind, name, words, when)
            if number % 2:
                desk.sweep()
                _fill_some(desk, patience)
        desk.settle()
        fresh = _fresh(desk, Path(base))
        try:
            for query in ("red", "blue", "数据", "red -blue", "e*", "red blue"):
                ours, theirs = desk.hits(query), fresh.hits(query)
                assert list(map(plain, ours)) == list(map(plain, theirs))
                scores = [hit.score for hit in theirs]
                assert [hit.score for hit in ours] == pytest.approx(scores, rel=1e-12)
            assert desk.is_sound()
        finally:
            desk.close()
            fresh.close()


def _fill_some(desk, patience):
    left = [patience]

    def pace():
        left[0] -= 1
        if left[0] < 0:
            raise CancelledError("enough")

    try:
        desk.fill(pace)
    except CancelledError:
        return


def _fresh(desk, base):
    """Index the same home from nothing."""
    other = Desk(base / "other")
    other.home.path = desk.home.path
    other.settle()
    return other
