from __future__ import annotations

import math

import pytest

from flue_grpc.agentindex.adapters._tally import exact_parts
from tests.unit.agentindex.reading import Reading, as_bytes


def entry(kind, /, **members):
    return {"type": kind} | members


def message(role, content=None, /, **members):
    return entry("message", message={"role": role, "content": content} | members)


def text(value):
    return {"type": "text", "text": value}


def usage(total=None, **counts):
    return counts | ({} if total is None else {"cost": {"input": 0, "total": total}})


def read(*lines):
    reading = Reading("pi", {"type": "session"}, *lines)
    reading.check_laws()
    return reading


@pytest.mark.parametrize(
    ("spent", "expected"),
    [
        (usage(input=1, output=2, cacheRead=3, cacheWrite=4, totalTokens=99), (1, 2, 3, 4)),
        (usage(totalTokens=99), (99, 0, 0, 0)),
        (usage(totalTokens=99, output=0), (0, 0, 0, 0)),
        (usage(input=1, cache={"read": 3, "write": 4}), (1, 0, 3, 4)),
        (usage(input=1, cacheRead=0, cache={"read": 3, "write": 4}), (1, 0, 0, 4)),
        (usage(input=1, cacheCreation=7), (1, 0, 0, 7)),
        (usage(input="1", output=2.0, cacheRead=-3, cacheWrite=None), (1, 2, 0, 0)),
        ("x", (0, 0, 0, 0)),
        (None, (0, 0, 0, 0)),
    ],
)
def test_tokens_in_every_spelling(spent, expected):
    assert read(message("assistant", [], usage=spent)).tokens == expected


def test_tokens_and_costs_of_every_line_that_has_them():
    reading = read(
        message("assistant", [], usage=usage(0.5, input=1)),
        message("toolResult", [], usage=usage(0.25, input=10)),
        entry("compaction", summary="x", usage=usage(0.125, input=100)),
        entry("branch_summary", usage=usage(input=1000)),
        message("user", "x", usage=usage(9, input=9)),
        entry("custom", usage=usage(9, input=9)),
    )
    assert reading.tokens == (1111, 0, 0, 0)
    assert reading.summary.cost_usd == 0.875


def test_an_entry_that_is_repeated_is_counted_once_and_shown_twice():
    line = message("assistant", [text("a")], usage=usage(0.5, input=1)) | {"id": "00000004"}
    other = message("assistant", [text("b")], usage=usage(0.5, input=1)) | {"id": "00000005"}
    reading = read(line, line, other, line)
    assert (reading.tokens, reading.summary.cost_usd) == ((2, 0, 0, 0), 1.0)
    assert reading.texts == ["a", "a", "b", "a"]


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ([None], None),
        ([0], 0.0),
        ([0.1] * 10, 1.0),
        ([1e8, 1e-9, -1, "2", 1e-9], 1e8 + 2e-9),
        ([1e300, 1e10], None),
        ([True, [], {}], None),
    ],
)
def test_cost_is_what_is_recorded(costs, expected):
    lines = [message("assistant", [], usage=usage(cost, input=1)) for cost in costs]
    reading = read(*lines)
    assert reading.summary.cost_usd == expected
    recorded = [u.cost_usd for u in reading.usage if u.cost_usd is not None]
    assert (math.fsum(recorded) if recorded else None) == expected


@pytest.mark.parametrize("literal", [b"1e999", b"NaN", b"-Infinity"])
def test_a_cost_that_is_no_number_is_none(literal):
    line = as_bytes(message("assistant", [], usage=usage(77, input=1))).replace(b"77", literal)
    assert read(line[:-1]).summary.cost_usd is None


def test_a_cost_without_a_total_is_not_recorded():
    line = message("assistant", [], usage={"input": 1, "cost": {"input": 0.5, "output": 0.5}})
    assert read(line).summary.cost_usd is None


def test_the_sum_is_exact_in_whatever_steps_it_was_made():
    numbers = [1e8, 0.1, 1e-9, 3.3, 0.7, 1e-12] * 100
    reading = read()
    for number in numbers:
        reading.feed(as_bytes(message("assistant", [], usage=usage(number, input=1))))
    assert len(reading.state.costs) <= 128
    assert reading.summary.cost_usd == math.fsum(numbers)
    parts = exact_parts([1e16, 1.0, -1e16, 0.1, 1e-12])
    assert math.fsum(parts) == math.fsum([1e16, 1.0, -1e16, 0.1, 1e-12])
    assert len(parts) <= 5
    assert exact_parts([]) == exact_parts([0.0]) == []
