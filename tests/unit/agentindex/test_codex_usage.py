from __future__ import annotations

import pytest

from flue_grpc.limits import PROVISIONAL_LINES
from tests.unit.agentindex.reading import Reading
from tests.unit.agentindex.rollout import EIGHT, count, event, line, message, meta, totals, turn

BIG = 2**63 - 1


def tokens(*lines):
    reading = Reading("codex", meta(), turn("m-1"), *lines)
    reading.check_laws()
    return reading.tokens


def test_the_last_total_is_the_sum_and_each_line_adds_its_increase():
    reading = Reading(
        "codex",
        meta(),
        turn("m-1"),
        count(totals(100, 30, 10, 20), at=1),
        count(totals(100, 30, 10, 20), at=2),
        event("token_count", 3, info=None),
        turn("m-2", at=4),
        count(totals(250, 130, 15, 20), at=5),
    )
    reading.check_laws()
    assert reading.tokens == (100, 15, 130, 20)
    assert reading.added == [(50, 10, 30, 20), (50, 5, 100, 0)]
    assert [(u.ts - EIGHT, u.model) for u in reading.usage] == [(10**6, "m-1"), (5 * 10**6, "m-2")]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([(100, 10), (50, 5)], (150, 15)),
        ([(100, 10), (0, 0), (30, 3)], (130, 13)),
        ([(100, 10), (120, 4)], (220, 14)),
        ([(100, 10), (0, 0), (0, 0)], (100, 10)),
        ([(0, 0), (10, 1)], (10, 1)),
    ],
)
def test_a_total_that_falls_has_started_again(steps, expected):
    lines = [count(totals(whole, 0, output), at=n) for n, (whole, output) in enumerate(steps)]
    assert tokens(*lines) == (*expected, 0, 0)


def test_what_is_kept_of_the_largest_totals_fits_into_64_bits():
    lines = [count(totals(whole, 0, 1), at=at) for at, whole in enumerate([BIG, 0] * 3)]
    reading = Reading("codex", *lines)
    reading.check_laws()
    reading.store()
    assert reading.state.counter.added.input == BIG


def test_an_overflow_leaves_only_a_total_and_counting_goes_on_from_zero():
    overflow = totals() | {"total_tokens": 258_400}
    assert tokens(count(totals(100, 0, 10)), count(overflow), count(totals(7, 0, 1))) == (
        107,
        11,
        0,
        0,
    )


def test_a_cache_count_that_falls_alone_is_believed_but_never_below_zero():
    lines = [meta(forked_from_id="p"), meta(0, "p"), count(totals(100, 50, 1)), turn("m", at=9)]
    steps = [(110, 30, 2), (120, 40, 3), (130, 90, 4)]
    reading = Reading("codex", *lines, *(count(totals(*step), at=10) for step in steps))
    reading.check_laws()
    assert reading.tokens == (0, 3, 40, 0)
    assert reading.added == [(30, 1, 0, 0), (0, 1, 0, 0), (-30, 1, 40, 0)]


@pytest.mark.parametrize(
    ("total", "expected"),
    [
        ({"input_tokens": 10, "cached_input_tokens": 30, "output_tokens": 1}, (0, 1, 30, 0)),
        ({"input_tokens": 10, "cache_creation_input_tokens": 4}, (6, 0, 0, 4)),
        ({"input_tokens": "12", "output_tokens": 3.0}, (12, 3, 0, 0)),
        ({"input_tokens": -5, "output_tokens": None}, (0, 0, 0, 0)),
        ({}, (0, 0, 0, 0)),
        (None, (0, 0, 0, 0)),
        ("x", (0, 0, 0, 0)),
    ],
)
def test_totals_of_every_shape(total, expected):
    assert tokens(count(total)) == expected


@pytest.mark.parametrize(
    "origin",
    [
        {"forked_from_id": "p"},
        {"parent_thread_id": "p"},
        {"thread_source": "subagent"},
        {"source": {"subagent": "review"}},
        {"history_base": {"x": 1}},
        {"subagent_history_start_ordinal": 3},
    ],
)
def test_a_fork_may_begin_with_the_total_of_its_parent(origin):
    lines = [
        meta(**origin),
        count(totals(1000, 0, 100), last=totals()),
        turn("m-1"),
        count(totals(1010, 0, 103), last=totals(10, 0, 3)),
    ]
    reading = Reading("codex", *lines)
    reading.check_laws()
    assert reading.tokens == (10, 3, 0, 0)


@pytest.mark.parametrize(
    "lines",
    [
        [meta(), count(totals(1000), last=totals())],
        [meta(forked_from_id="p"), turn("m"), count(totals(1000), last=totals())],
        [meta(forked_from_id="p"), event("task_started"), count(totals(1000), last=totals())],
        [meta(forked_from_id="p"), count(totals(1000), last=totals(1))],
        [meta(forked_from_id="p"), count(totals(1000))],
        [meta(history_base=None), count(totals(1000), last=totals())],
        [meta(forked_from_id="p"), count(totals(400)), count(totals(1000), last=totals())],
    ],
)
def test_no_other_first_total_is_a_baseline(lines):
    assert Reading("codex", *lines).tokens == (1000, 0, 0, 0)


def record(turn_id, total, at=0):
    return line("token_usage_record", at, {"turn_id": turn_id, "turn_token_usage": total})


def test_snapshots_of_turns_count_where_there_is_no_total():
    reading = Reading(
        "codex",
        meta(),
        turn("m-1"),
        record("t-1", totals(10, 2, 1), at=1),
        record("t-1", totals(30, 5, 4), at=2),
        record("t-1", totals(30, 5, 4), at=3),
        record("t-2", totals(7, 0, 1), at=4),
        event("token_count", 5, info=None),
        line("token_usage_record", 6, {"turn_id": "t-3"}),
    )
    reading.check_laws()
    assert reading.tokens == (32, 5, 5, 0)
    assert reading.added == [(8, 1, 2, 0), (17, 3, 3, 0), (7, 1, 0, 0)]


def test_a_total_makes_snapshots_void():
    reading = Reading(
        "codex",
        meta(),
        record("t-1", totals(10, 2, 1), at=1),
        record("t-1", totals(30, 5, 4), at=2),
        count(totals(31, 5, 4), at=3),
        record("t-2", totals(500), at=4),
    )
    reading.check_laws()
    assert reading.tokens == (26, 4, 5, 0)
    assert [(u.ts - EIGHT, u.tokens.input) for u in reading.usage] == [
        (10**6, 8),
        (2 * 10**6, 17),
        (10**6, -8),
        (2 * 10**6, -17),
        (3 * 10**6, 26),
    ]


def test_what_may_be_taken_back_is_bounded():
    events = [event("user_message", at, message="x") for at in range(PROVISIONAL_LINES + 50)]
    reading = Reading("codex", meta(), *events)
    assert len(reading.state.mirrored.lines) == PROVISIONAL_LINES
    assert reading.summary.message_count == PROVISIONAL_LINES + 50
    reading.check_laws()
    reading.feed(Reading("codex", message("user", "native")).data)
    reading.check_laws()
    assert reading.summary.message_count == 1
