from __future__ import annotations

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue_grpc.errors import (
    BadCombinationError,
    BadDirectionError,
    BadEnumError,
    BadLimitError,
    BadOffsetError,
    BadTimeError,
)
from flue_grpc.rpc import requests

NAMES = {1: "one", 2: "two"}


@pytest.mark.parametrize(
    ("value", "default", "most", "limit"),
    [(0, 0, None, 0), (5, 0, None, 5), (0, 10, 100, 10), (100, 10, 100, 100), (101, 10, 100, 100)],
)
def test_limits(value, default, most, limit):
    assert requests.limit(value, default, most) == limit


@pytest.mark.parametrize("value", [-1, -(2**31)])
def test_negative_numbers(value):
    with pytest.raises(BadLimitError) as caught:
        requests.limit(value, 10)
    assert caught.value.field == "limit"
    with pytest.raises(BadLimitError) as caught:
        requests.not_negative(value, "window")
    assert caught.value.field == "window"
    with pytest.raises(BadOffsetError) as caught:
        requests.offset(value, "index")
    assert caught.value.field == "index"


def test_an_offset_that_is_absent_is_not_zero():
    assert requests.optional_offset(ai.ReadPageRequest()) is None
    assert requests.optional_offset(ai.ReadPageRequest(offset=0)) == 0
    assert requests.optional_offset(ai.ReadPageRequest(offset=2**63 - 1)) == 2**63 - 1


def test_enums():
    assert requests.known(2, NAMES, "mode") == "two"
    assert requests.all_known([2, 1, 2], NAMES, "roles") == ("two", "one", "two")
    for value in (0, 3, -1):
        with pytest.raises(BadEnumError) as caught:
            requests.known(value, NAMES, "mode")
        assert (caught.value.field, caught.value.metadata) == ("mode", {"value": str(value)})
        with pytest.raises(BadDirectionError):
            requests.direction(value, NAMES)


@pytest.mark.parametrize(
    ("since", "microseconds"),
    [
        ((0, 0), 0),
        ((1, 0), 1_000_000),
        ((0, 1), 1),
        ((0, 1000), 1),
        ((0, 1001), 2),
        ((-1, 999_999_999), 0),
        ((-1, 0), -1_000_000),
        ((-62_135_596_800, 0), -62_135_596_800_000_000),
        ((253_402_300_799, 999_999_000), 253_402_300_799_999_999),
    ],
)
def test_times_are_rounded_up_to_microseconds(since, microseconds):
    time = Timestamp(seconds=since[0], nanos=since[1])
    assert requests.span(ai.UsageRequest(since=time)) == (microseconds, None)
    assert requests.span(ai.UsageRequest(until=time)) == (None, microseconds)


@pytest.mark.parametrize(
    "time",
    [
        (-62_135_596_801, 0),
        (253_402_300_800, 0),
        (0, -1),
        (0, 1_000_000_000),
        (2**63 - 1, 0),
        (-(2**63), 0),
    ],
)
def test_times_outside_of_their_range(time):
    bad = Timestamp(seconds=time[0], nanos=time[1])
    for field in ("since", "until"):
        with pytest.raises(BadTimeError) as caught:
            requests.span(ai.UsageRequest(**{field: bad}))
        assert caught.value.field == field


def test_a_span_has_to_be_one():
    early, late = Timestamp(seconds=1), Timestamp(seconds=1, nanos=1)
    assert requests.span(ai.UsageRequest(since=early, until=late)) == (1_000_000, 1_000_001)
    for since, until in ((late, early), (early, early)):
        with pytest.raises(BadCombinationError):
            requests.span(ai.UsageRequest(since=since, until=until))
    assert requests.span(ai.UsageRequest()) == (None, None)
