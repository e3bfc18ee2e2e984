from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc import limits
from flue_grpc.agentindex.adapters.base import Context
from flue_grpc.agentindex.hit_filter import HitFilter
from flue_grpc.agentindex.substring import SubstringSearch, search
from flue_grpc.cancel import NEVER
from flue_grpc.errors import CancelledError
from flue_grpc.listing import Pause, Placed
from tests.unit.agentindex.notes import Notes, note
from tests.unit.agentindex.notes_library import Library, found, hits, run


@pytest.fixture
def library(tmp_path):
    return Library(tmp_path)


def test_a_spent_budget_stops_and_the_cursor_goes_on(library):
    line = note("red " + "x" * 1000)
    for name in "abc":
        library.write(name, *[line] * 300)
    expected = found(library.hits("red"))
    assert len(expected) == 900
    calls = run(library, "red", 400_000)
    assert [len(call) for call in calls] == [393, 393, 114]
    assert found(hit for call in calls for hit in call) == expected


def test_one_call_makes_progress_however_small_its_budget(library):
    library.write("a", *[note("red " + "x" * 200_000)] * 3)
    library.write("b", note("red"))
    calls = run(library, "red", 1)
    assert [len(call) for call in calls] == [1, 1, 1, 1]


def test_a_line_above_the_cap_does_not_hold_a_small_budget_up(library, monkeypatch):
    monkeypatch.setattr("flue_grpc.agentindex.scanner.LINE_BYTES", 200_000)
    library.write("a", note("x" * 1_000_000), note("red"))
    library.write("b", note("red"))
    assert [len(call) for call in run(library, "red", 1)] == [0, 1, 1]
    *_, last = library.search("red", max_bytes=1)
    assert last.bytes_scanned < 400_000


def test_the_last_possible_hit_leaves_nothing_to_go_on_with(library):
    library.write("a", note("red"))
    size = library.path("a").stat().st_size
    steps = list(library.search("red", max_bytes=size))
    assert [type(step) for step in steps] == [Placed, Pause, Pause]
    assert steps[-1] == Pause(size)


def test_each_hit_is_a_place_to_go_on_from(library):
    library.write("b", note("red", "x", "red"), note("y"), note("red"))
    library.write("a", note("red"))
    steps = [step for step in library.search("red") if isinstance(step, Placed)]
    whole = [step.item for step in steps]
    for number, step in enumerate(steps, start=1):
        assert found(library.hits("red", after=step.cursor)) == found(whole[number:])


def test_bytes_scanned_count_what_was_looked_at(library):
    library.write("a", note("x" * 300_000))
    library.write("b", note("y" * 100))
    total = sum(library.path(name).stat().st_size for name in "ab")
    for query in ("zzz", '""}}', "y"):
        assert list(library.search(query))[-1] == Pause(total)


class Clock:
    """A clock that is moved by each look at it."""

    def __init__(self, step):
        self.now = 0.0
        self.step = step

    def __call__(self):
        self.now += self.step
        return self.now


def steps_with_clock(library, step, query="red"):
    request = SubstringSearch(query, HitFilter())
    return list(search(library.catalog, library.target, request, None, NEVER, Clock(step)))


def test_hits_are_told_to_leave_soon_and_a_long_scan_says_how_far_it_is(library):
    library.write("a", note("red"), *[note("x" * 1000)] * 2000)
    steps = steps_with_clock(library, 0.03)
    assert [type(step) for step in steps[:2]] == [Placed, Pause]
    assert steps[1].cursor.offset == len(note("red")) + 1
    scanned = [step.bytes_scanned for step in steps if isinstance(step, Pause)]
    assert scanned == sorted(scanned)
    assert scanned[-1] == library.path("a").stat().st_size
    # Sixteen windows, 0.3 seconds each: one word at every second of them, and at the end.
    assert len(steps_with_clock(library, 0.3, "zzz")) == 9


def test_the_first_hit_leaves_at_once_and_others_wait_for_each_other(library):
    library.write("a", *[note("red")] * 5)
    kinds = [type(step) for step in steps_with_clock(library, 0.0)]
    assert kinds == [Placed, Pause, *[Placed] * 4, Pause]


def test_a_pause_is_a_place_to_go_on_from(library):
    library.write("a", *[note("x" * 10_000), note("red")] * 50)
    library.write("b", note("red"))
    steps = steps_with_clock(library, 1.0)
    expected = found(hits(steps))
    for number, step in enumerate(steps):
        if isinstance(step, Pause) and step.cursor is not None:
            before = found(hits(steps[:number]))
            assert before + found(library.hits("red", after=step.cursor)) == expected


class After:
    """Cancelled when it was asked so often."""

    def __init__(self, times):
        self.times = times

    def is_cancelled(self):
        return self.times <= 0

    def check(self):
        self.times -= 1
        if self.is_cancelled():
            raise CancelledError("nobody waits")


def test_cancellation_is_seen_at_each_line_and_inside_long_ones(library):
    library.write("a", *[note("red")] * 1000)
    cancel = After(100)
    seen = []
    with pytest.raises(CancelledError):
        seen.extend(library.search("red", cancel=cancel))
    assert 80 < len(seen) < 100
    library.write("b", note("x" * 4 * limits.MIB))
    with pytest.raises(CancelledError):
        library.hits("zzz", cancel=After(20))


WORDS = st.sampled_from(["red", "Red blue", "RED", "gr\u00e9en", "x" * 300, "re d", "\u212aed"])
LINES = st.lists(st.lists(WORDS, max_size=3).map(lambda texts: note(*texts)), max_size=8)


@given(
    sessions=st.lists(LINES, min_size=1, max_size=4),
    query=st.sampled_from(["red", "ed", "ked", "Éen", '"', "d b"]),
    max_bytes=st.integers(1, 3000),
    window=st.sampled_from([300, 700, 128 * 1024]),
)
@settings(max_examples=80, deadline=None)
def test_calls_that_go_on_from_each_other_equal_one(
    tmp_path_factory, sessions, query, max_bytes, window
):
    library = Library(tmp_path_factory.mktemp("law"))
    expected = []
    for number, lines in enumerate(sessions):
        library.write(f"s{number}", *lines)
        offset = 0
        for line in lines:
            messages, _ = Notes().messages(line, offset, Context())
            expected += [
                (f"s{number}", offset, message.index)
                for message in messages
                if query.casefold() in message.text.casefold()
            ]
            offset += len(line) + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("flue_grpc.agentindex.scanner.SCAN_WINDOW_BYTES", window)
        assert found(library.hits(query)) == expected
        calls = run(library, query, max_bytes)
    assert found(hit for call in calls for hit in call) == expected
