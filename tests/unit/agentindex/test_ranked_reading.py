"""Reading the RANKED index through two connections of one moment (behaviour B7)."""

from __future__ import annotations

import threading

import apsw
import pytest

from flue_grpc import limits
from flue_grpc.agentindex import ranked_query
from flue_grpc.agentindex.ranked_index import State, load_state
from flue_grpc.agentindex.ranked_reading import Halves, one_moment
from flue_grpc.cancel import NEVER
from flue_grpc.errors import CancelledError, DeadlineError
from tests.unit.agentindex.logs import SECOND
from tests.unit.agentindex.talks import Desk, Stopper, pages, talk

ENDLESS = "with recursive n(x) as (select 1 union all select x + 1 from n) select count(*) from n"
NEVER_LONG = 10**9


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """Sessions of various sizes, so that the halves hold different matches."""
    desk = Desk(tmp_path_factory.mktemp("shelf"))
    for number, name in enumerate("pqrstuv"):
        lines = [
            talk(
                f"red {name}{line} " + "pad " * (line * 7 % 13) + "blue " * (line % 3),
                role=("user", "assistant")[line % 2],
                t=line * 11 % 37,
            )
            for line in range(5 + 9 * number)
        ]
        desk.write(f"{name}/{name}", *lines)
    desk.settle()
    yield desk
    desk.close()


@pytest.fixture
def moment(shelf):
    """A connection within its moment, and the state that it sees."""
    with shelf.file.reader() as db, one_moment(db):
        yield db, load_state(db)


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("ranked-half")]


@pytest.mark.parametrize("query", ["red", "blue", "red blue", "pad -blue", "re*", '"pad blue"'])
@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"roles": ("user",)},
        {"cwd": "/v"},
        {"since": 5 * SECOND, "until": 30 * SECOND},
    ],
)
def test_two_halves_are_the_whole(shelf, monkeypatch, query, wanted):
    monkeypatch.setattr(ranked_query, "RANKED_HALVES_SAMPLE", NEVER_LONG)
    one = [shelf.hits(query, limit=limit, **wanted) for limit in (1, 7, 1000)]
    asked = []
    both = Halves.both
    monkeypatch.setattr(Halves, "both", lambda *args: asked.append(None) or both(*args))
    monkeypatch.setattr(ranked_query, "RANKED_HALVES_SAMPLE", 0)
    assert [shelf.hits(query, limit=limit, **wanted) for limit in (1, 7, 1000)] == one
    assert pages(shelf, query, 7, **wanted) == one[-1]
    assert one[-1]
    assert asked
    assert threads() == []


def test_each_half_has_many_of_the_rows(shelf, monkeypatch):
    monkeypatch.setattr(ranked_query, "RANKED_HALVES_SAMPLE", 0)
    sizes = []

    def both(_, db, first, second):
        halves = first(db), second(db)
        sizes.append([len(half) for half in halves])
        return halves[0] + halves[1]

    monkeypatch.setattr(Halves, "both", both)
    whole = len(shelf.hits("red", limit=1000))
    lower, upper = sizes[-1]
    assert lower + upper == whole == sum(5 + 9 * number for number in range(7))
    assert min(lower, upper) > whole / 4


def test_the_second_half_has_a_thread_and_a_connection_of_its_own(shelf, moment):
    db, state = moment
    seen = []

    def ask(one):
        seen.append((one is db, threading.current_thread() is threading.main_thread()))
        return [(load_state(one).number, len(seen))]

    rows = Halves(shelf.file, state, NEVER).both(db, ask, ask)
    assert [number for number, _ in rows] == [state.number] * 2
    assert sorted(seen) == [(False, False), (True, True)]


@pytest.mark.parametrize("epoch", [0, 1])
def test_one_connection_is_asked_twice_when_the_other_sees_another_state(shelf, moment, epoch):
    db, state = moment
    other = State(state.epoch + epoch, state.number + 1 - epoch)
    seen = []

    def ask(one):
        seen.append(one)
        return [(0.0, len(seen))]

    assert Halves(shelf.file, other, NEVER).both(db, ask, ask) == [(0.0, 1), (0.0, 2)]
    assert seen == [db, db]


def test_what_is_filled_meanwhile_is_not_seen_by_half(tmp_path, monkeypatch):
    monkeypatch.setattr(ranked_query, "RANKED_HALVES_SAMPLE", 0)
    desk = Desk(tmp_path)
    desk.write("a/x", *[talk(f"red {number}") for number in range(5)])
    desk.settle()
    both = Halves.both

    def fill_first(*args):
        desk.write("a/y", talk("red new"))
        desk.settle()
        return both(*args)

    monkeypatch.setattr(Halves, "both", fill_first)
    assert desk.texts("red", limit=1000) == [f"red {number}" for number in (4, 3, 2, 1, 0)]
    monkeypatch.setattr(Halves, "both", both)
    assert len(desk.texts("red", limit=1000)) == 6
    desk.close()


@pytest.mark.parametrize("error", [CancelledError, DeadlineError])
def test_halves_that_are_called_off_stop_anywhere(shelf, monkeypatch, error):
    monkeypatch.setattr(limits, "SQL_PROGRESS_STEPS", 10)
    monkeypatch.setattr(ranked_query, "RANKED_HALVES_SAMPLE", 0)
    whole = shelf.hits("red", limit=3)
    for patience in range(0, 400, 7):
        stopper = Stopper(patience, error)
        steps = shelf.steps("red", limit=3, cancel=stopper)
        with pytest.raises(error):
            list(steps)
        assert threads() == []
    assert shelf.hits("red", limit=3) == whole
    db = shelf.file.writer()
    db.execute("update ranked_fills set number = number")
    assert db.execute("pragma wal_checkpoint(truncate)").get[0] == 0  # nobody is reading
    db.close()


def test_a_second_half_that_nobody_needs_is_stopped(shelf, moment):
    db, state = moment
    is_asked = threading.Event()

    def fails(_):
        assert is_asked.wait(30)
        raise apsw.CorruptError("damaged")

    def never_ends(one):
        is_asked.set()
        return one.execute(ENDLESS).fetchall()

    with pytest.raises(apsw.CorruptError, match="damaged"):
        Halves(shelf.file, state, NEVER).both(db, fails, never_ends)
    assert threads() == []


def test_an_error_of_the_second_half_is_that_of_the_call(shelf, moment):
    db, state = moment

    def fails(_):
        raise apsw.CorruptError("damaged")

    with pytest.raises(apsw.CorruptError, match="damaged"):
        Halves(shelf.file, state, NEVER).both(db, lambda _: [], fails)
    assert threads() == []
