from __future__ import annotations

from datetime import UTC, timedelta, timezone

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue_grpc.render.amounts import bar, counted, moment, money, short_number, size, total_tokens


@pytest.mark.parametrize(("number", "shown"), [(0, "0 hits"), (1, "1 hit"), (2, "2 hits")])
def test_one_is_no_plural(number, shown):
    assert counted(number, "hit") == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (1249, "1.2k"),
        (9949, "9.9k"),
        (9950, "10k"),
        (34_999, "35k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (4_000_000, "4.0M"),
        (2**63 - 1, "9.2E"),
    ],
)
def test_numbers_have_at_most_three_digits(number, shown):
    assert short_number(number) == shown


def test_sizes_are_in_bytes():
    assert [size(n) for n in (17, 1234, 35_000_000)] == ["17 B", "1.2 kB", "35 MB"]


def test_money_tells_nothing_recorded_from_nothing_paid():
    assert money(pb.Summary()) == "-"
    assert money(pb.Summary(cost_usd=0)) == "$0.00"
    assert money(pb.UsageRow(cost_usd=1234.5)) == "$1,234.50"


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (0.0006, "$0.0006"),
        (0.00064, "$0.00064"),
        (0.0099999, "$0.01"),
        (0.01, "$0.01"),
        (0.019, "$0.02"),
        (1e-12, "$0.000000001"),
    ],
)
def test_less_than_a_cent_is_not_nothing(cost, shown):
    assert money(pb.Summary(cost_usd=cost)) == shown


def test_times_are_those_of_the_zone():
    timestamp = Timestamp(seconds=1_772_355_600)
    assert moment(timestamp, UTC) == "2026-03-01 09:00"
    assert moment(timestamp, timezone(timedelta(hours=9))) == "2026-03-01 18:00"
    assert moment(Timestamp(), UTC) == "-"


def test_tokens_add_up():
    assert total_tokens(pb.TokenUsage(input=1, output=2, cache_read=4, cache_write=8)) == 15


@pytest.mark.parametrize(
    ("value", "most", "drawn"),
    [
        (0, 8, ""),
        (8, 8, "████"),
        (4, 8, "██"),
        (1, 8, "▌"),
        (0.001, 8, "▏"),
        (3, 8, "█▌"),
        (0, 0, ""),
    ],
)
def test_bars_are_proportional(value, most, drawn):
    assert bar(value, most, 4) == drawn
