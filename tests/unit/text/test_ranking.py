from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.text.ranking import Scored, is_tie, ranked_page, tie_pass

ROWS = st.lists(
    st.tuples(
        st.sampled_from([-9.0, -8.0, -7.9, -2.0, -1.9, -1.7, -1.0, -3e-6, -2.9e-6, -2e-6, 0.0]),
        st.integers(0, 4),
    ),
    max_size=24,
).map(
    lambda rows: [Scored(score, when, number) for number, (score, when) in enumerate(sorted(rows))]
)


def in_order(rows):
    """The whole list by the rule, all in memory."""
    result, run = [], []
    for row in rows:
        if run and not is_tie(run[0].score, row.score):
            result += sorted(run, key=lambda r: (r.when, r.id), reverse=True)
            run = []
        run.append(row)
    return result + sorted(run, key=lambda r: (r.when, r.id), reverse=True)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (-1.0, -1.0, True),
        (0.0, 0.0, True),
        (-11.0, -9.0, True),
        (-1.0, -0.8, False),
        (-1.0, -0.82, True),
        (-3e-6, -2.5e-6, True),
        (-3e-6, -2e-6, False),
        (-1e-6, 0.0, False),
        (-1e300, -1e300, True),
    ],
)
def test_is_tie(a, b, expected):
    assert is_tie(a, b) is expected


def test_recency_decides_within_a_run_and_its_anchor_is_the_first():
    rows = [Scored(-10.0, 1, 1), Scored(-9.0, 3, 2), Scored(-8.5, 2, 3), Scored(-8.0, 9, 4)]
    assert [row.id for row, _ in tie_pass(rows, 10)] == [2, 3, 1, 4]


def test_equal_times_are_ordered_by_id_descending():
    rows = [Scored(-1.0, 5, number) for number in (1, 2, 3)]
    assert [row.id for row, _ in tie_pass(rows, 10)] == [3, 2, 1]


def test_the_limit_is_applied_after_the_tie_pass():
    rows = [Scored(-1.0 + number / 10_000, number, number) for number in range(1000)]
    assert [row.id for row, _ in tie_pass(rows, 3)] == [999, 998, 997]


def test_only_the_runs_that_are_needed_are_read():
    read = []

    def rows():
        for number in range(100):
            read.append(number)
            yield Scored(-math.pow(0.5, number), 0, number)

    assert [row.id for row, _ in tie_pass(rows(), 3)] == [0, 1, 2]
    assert read == [0, 1, 2, 3]


@given(ROWS, st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_the_pass_is_the_rule_cut_at_the_limit(rows, limit):
    assert [row for row, _ in tie_pass(rows, limit)] == in_order(rows)[:limit]


@given(ROWS, st.lists(st.integers(1, 5), min_size=30, max_size=30))
@settings(max_examples=60, deadline=None)
def test_pages_put_together_are_the_whole_list(rows, sizes):
    pages, after = [], None
    for size in sizes:
        page, start = ranked_page(lambda count: first(rows, count), size, after)
        assert start == len(pages)
        pages += page
        if len(page) < size:
            break
        after = len(pages), page[-1].id
    assert pages == in_order(rows)


def first(rows, count):
    return [row for row, _ in tie_pass(rows, count)]


def moved(*ids):
    """Rank these ids in this order, and note how many were asked for."""
    asked = []

    def rank(count):
        asked.append(count)
        return [Scored(float(place), 0, number) for place, number in enumerate(ids)][:count]

    return rank, asked


def test_a_place_is_its_match_wherever_that_has_moved():
    rank, asked = moved(9, 8, 1, 2, 3)
    page, start = ranked_page(rank, 2, (1, 1))
    assert ([row.id for row in page], start) == ([2, 3], 3)
    assert asked == [3, 5]
    rank, _ = moved(2, 1, 3, 4)
    assert [row.id for row in ranked_page(rank, 2, (3, 2))[0]] == [1, 3]


def test_a_place_whose_match_is_gone_is_its_number():
    rank, _ = moved(1, 2, 4, 5)
    page, start = ranked_page(rank, 9, (3, 3))
    assert ([row.id for row in page], start) == ([5], 3)


def test_a_run_comes_with_its_anchor():
    rows = [Scored(-10.0, 1, 1), Scored(-9.0, 3, 2), Scored(-5.0, 2, 3)]
    assert [(row.id, anchor) for row, anchor in tie_pass(rows, 9)] == [
        (2, -10.0),
        (1, -10.0),
        (3, -5.0),
    ]
