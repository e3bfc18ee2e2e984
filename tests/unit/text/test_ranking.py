from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.text.ranking import Place, Scored, is_tie, tie_pass

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
        page = list(tie_pass(rows, size, after))
        pages += [row for row, _ in page]
        if len(page) < size:
            break
        after = page[-1][1]
    assert pages == in_order(rows)


def test_a_place_survives_scores_that_moved_a_little():
    rows = [Scored(-1.0, when, when) for when in range(6)]
    (_, _), (_, place) = tie_pass(rows, 2)
    assert place == Place(-1.0, 4, 4)
    moved = [Scored(-0.99, row.when, row.id) for row in rows]
    assert [row.id for row, _ in tie_pass(moved, 2, place)] == [3, 2]
