from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.agentindex.adapters.base import Source
from tests.unit.agentindex.reading import UUID, Reading

BIG = 2**63 - 1


def response(request, message, usage, *, sidechain=False, at=0, model="m-1"):
    return {
        "type": "assistant",
        "timestamp": f"2026-03-01T09:00:{at:02}Z",
        "requestId": request,
        "isSidechain": sidechain,
        "message": {"id": message, "model": model, "usage": usage, "content": []},
    }


def usage(input_tokens=0, output=0, read=0, write=0):
    return {
        "input_tokens": input_tokens,
        "output_tokens": output,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
    }


def tokens(*lines, source=None):
    reading = Reading("claude", *lines, source=source)
    reading.check_laws()
    return reading.tokens


def test_the_lines_of_a_response_count_once_and_each_adds_its_growth():
    reading = Reading(
        "claude",
        response("r1", "m1", usage(4, 2, 900, 120)),
        response("r1", "m1", usage(4, 61, 900, 120), at=1),
        response("r1", "m1", usage(4, 61, 900, 120), at=2),
        response("r2", "m2", usage(1, 1), at=3),
        response("r1", "m1", usage(4, 50, 900, 120), at=4),
    )
    reading.check_laws()
    assert reading.tokens == (5, 62, 900, 120)
    assert reading.added == [(4, 2, 900, 120), (0, 59, 0, 0), (1, 1, 0, 0)]
    assert [u.ts % 60_000_000 for u in reading.usage] == [0, 1_000_000, 3_000_000]
    assert {u.model for u in reading.usage} == {"m-1"}


@pytest.mark.parametrize(
    ("ids", "total"),
    [
        ([("r", "m"), ("r", "m")], 10),
        ([("r1", "m"), ("r2", "m")], 20),
        ([("r", "m1"), ("r", "m2")], 10),
        ([(None, "m"), ("", "m")], 10),
        ([("r", "m"), (None, "m")], 20),
        ([("m", None), (None, "m")], 20),
        ([(None, None), (None, None)], 20),
    ],
)
def test_a_request_is_known_by_its_id_or_else_by_its_message(ids, total):
    assert tokens(*(response(*pair, usage(output=10)) for pair in ids)) == (0, total, 0, 0)


MAIN = response("r1", "m1", usage(1, 10))
REPLAY = response("r2", "m1", usage(2, 30), sidechain=True)


@pytest.mark.parametrize(
    ("lines", "expected", "added"),
    [
        ([MAIN, REPLAY], (1, 10), [(1, 10)]),
        ([REPLAY, MAIN], (1, 10), [(2, 30), (-1, -20)]),
        ([REPLAY, REPLAY, MAIN, REPLAY, MAIN], (1, 10), [(2, 30), (-1, -20)]),
        ([REPLAY], (2, 30), [(2, 30)]),
        ([MAIN, response("r1", "m1", usage(1, 12), sidechain=True)], (1, 12), [(1, 10), (0, 2)]),
        ([response("r1", "m1", usage(1, 12), sidechain=True), MAIN], (1, 12), [(1, 12)]),
        ([MAIN, response("r2", "m2", usage(0, 5), sidechain=True)], (1, 15), [(1, 10), (0, 5)]),
        ([MAIN, response(None, "m1", usage(2, 30), sidechain=True)], (1, 10), [(1, 10)]),
        ([response("r1", None, usage(1, 10)), MAIN, REPLAY], (1, 10), [(1, 10)]),
        (
            [response("r1", "m0", usage(1, 10)), REPLAY, MAIN],
            (1, 10),
            [(1, 10), (2, 30), (-2, -30)],
        ),
        (
            [response(None, "m1", usage(1, 10)), REPLAY, response(None, "m1", usage(1, 11))],
            (1, 11),
            [(1, 10), (0, 1)],
        ),
    ],
)
def test_a_replay_in_a_sidechain_is_dropped_wherever_it_stands(lines, expected, added):
    reading = Reading("claude", *lines)
    reading.check_laws()
    assert reading.tokens == (*expected, 0, 0)
    assert reading.added == [(*pair, 0, 0) for pair in added]


def test_the_lines_of_a_subagent_are_its_main_chain():
    source = Source("claude", f"{UUID}.agent-1", UUID, is_subagent=True)
    lines = [
        response("r1", "m1", usage(1, 10), sidechain=True),
        response("r2", "m1", usage(1, 20), sidechain=True),
    ]
    assert tokens(*lines, source=source) == (2, 30, 0, 0)


@pytest.mark.parametrize(
    ("members", "write"),
    [
        ({"cache_creation_input_tokens": 7, "cache_creation": {"ephemeral_5m_input_tokens": 9}}, 7),
        ({"cache_creation_input_tokens": 0, "cache_creation": {"ephemeral_5m_input_tokens": 9}}, 0),
        (
            {"cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}},
            7,
        ),
        ({"cache_creation": {"ephemeral_1h_input_tokens": 4}}, 4),
        ({"cache_creation": None}, 0),
        ({"iterations": [{"output_tokens": 5, "model": None}], "server_tool_use": {"x": 3}}, 0),
    ],
)
def test_cache_writes_are_read_from_one_place(members, write):
    assert tokens(response("r", "m", members)) == (0, 0, 0, write)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, 0),
        ("12", 12),
        ("1.5", 0),
        ("x", 0),
        (12.0, 12),
        (1.5, 0),
        (-1, 0),
        (True, 0),
        ([], 0),
        ({}, 0),
        (BIG, BIG),
        (BIG + 1, 0),
        (10**400, 0),
        (float(2**64), 0),
    ],
)
def test_odd_counts_are_read_or_count_as_missing(value, expected):
    assert tokens(response("r", "m", {"output_tokens": value, "input_tokens": 3})) == (
        3,
        expected,
        0,
        0,
    )


@pytest.mark.parametrize("value", [None, "x", 5, [], True])
def test_usage_of_a_wrong_type_is_no_usage(value):
    assert tokens(response("r", "m", value)) == (0, 0, 0, 0)


def test_a_sum_stays_below_64_bits_and_the_lines_agree():
    big = usage(BIG, BIG, BIG, BIG)
    reading = Reading("claude", response("r1", "m1", big), response("r2", "m2", usage(1, 2, 3, 4)))
    reading.check_laws()
    assert reading.tokens == (BIG, BIG, BIG, BIG)
    assert reading.added == [(BIG, BIG, BIG, BIG)]
    reading = Reading(
        "claude", response("r1", "m1", usage(BIG, 1, 5, 6)), response("r2", "m2", big)
    )
    reading.check_laws()
    assert reading.added == [(BIG, 1, 5, 6), (0, BIG - 1, BIG - 5, BIG - 6)]


def test_what_is_kept_of_the_largest_counts_fits_into_64_bits():
    lifetimes = {"ephemeral_5m_input_tokens": BIG, "ephemeral_1h_input_tokens": BIG}
    reading = Reading(
        "claude",
        response("r1", "m1", {"cache_creation": lifetimes}),
        response("r2", "m2", usage(BIG), sidechain=True),
        response("r3", "m2", usage(BIG), sidechain=True),
        response("r4", "m2", usage(1)),
    )
    reading.check_laws()
    reading.store()
    kept = [msgspec.structs.astuple(entry) for entry in reading.ledger.entries.values()]
    assert max(map(max, kept)) == BIG


def test_only_the_assistant_uses_tokens():
    lines = [response("r", "m", usage(output=5)) | {"type": kind} for kind in ("user", "progress")]
    assert tokens(*lines) == (0, 0, 0, 0)


def test_costs_of_old_builds_are_not_counted():
    assert Reading("claude", MAIN | {"costUSD": 0.5}).summary.cost_usd is None


REQUESTS = {"m1": ("r1", "side1", "aside1"), "m2": ("r2", "side2", "aside2")}
lines_of_requests = st.lists(
    st.tuples(
        st.sampled_from(["m1", "m2"]),
        st.booleans(),
        st.integers(0, 2),
        st.integers(0, 3),
        st.integers(0, 5),
    ),
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(lines_of_requests)
def test_the_order_of_lines_changes_no_sum(drawn):
    lines, counted = [], {}
    in_main_chain = {message for message, sidechain, *_ in drawn if not sidechain}
    for message, sidechain, which, sent, got in drawn:
        request = REQUESTS[message][which if sidechain else 0]
        lines.append(response(request, message, usage(sent, got), sidechain=sidechain))
        if which and sidechain and message in in_main_chain:
            continue
        largest = counted.get(request, (0, 0))
        counted[request] = (max(largest[0], sent), max(largest[1], got))
    expected = [sum(column) for column in zip((0, 0), *counted.values(), strict=True)]
    assert tokens(*lines) == (*expected, 0, 0)
