from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flue_grpc.agentindex.days import Days, load_zone
from flue_grpc.errors import BadTimeZoneError

SECOND = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = [
    "UTC",
    "Europe/Berlin",
    "Asia/Kathmandu",
    "America/St_Johns",  # its clocks changed one minute past midnight
    "America/Havana",  # they change at midnight
    "Africa/Monrovia",  # it was 44 minutes 30 seconds behind
    "Pacific/Apia",  # it left out a day
]


def oracle(time, zone):
    return (EPOCH + timedelta(microseconds=time)).astimezone(ZoneInfo(zone)).date().isoformat()


@given(
    st.lists(st.integers(0, 4 * 10**15), min_size=1, max_size=5),
    st.lists(st.integers(-2 * 86_400 * SECOND, 2 * 86_400 * SECOND), max_size=5),
    st.sampled_from(ZONES),
)
@example([1_162_094_400 * SECOND], [60 * SECOND, 4000 * SECOND, -1], "America/St_Johns")
@example([1_162_089_030 * SECOND], [60 * SECOND], "America/St_Johns")
@example([1_325_196_000 * SECOND], [-1, 0, 1], "Pacific/Apia")
@settings(max_examples=100)
def test_days_are_those_of_the_calendar(times, steps, zone):
    days = Days(load_zone(zone))
    for time in [*times, *(max(0, times[0] + step) for step in steps)]:
        assert days.name(time) == oracle(time, zone)


@given(st.integers(0, 2 * 10**15), st.integers(0, 2 * 86_400 * SECOND), st.sampled_from(ZONES))
@settings(max_examples=100)
def test_one_day_is_surely_one(first, length, zone):
    days = Days(load_zone(zone))
    if days.is_one_day(first, first + length):
        inner = {oracle(first + length * part // 20, zone) for part in range(21)}
        assert inner == {oracle(first, zone)}


def test_a_whole_day_is_known_to_be_one():
    days = Days(load_zone("Asia/Tokyo"))
    start = 1_760_022_000 * SECOND
    assert days.is_one_day(start, start + 86_400 * SECOND - 1)
    assert not days.is_one_day(start, start + 86_400 * SECOND)


def test_without_a_time_there_is_no_day():
    assert Days(load_zone("")).name(None) == ""


@pytest.mark.parametrize(("zone", "day"), [("Asia/Tokyo", "9999-12-31"), ("", "9999-12-31")])
def test_the_last_instant_has_a_day(zone, day):
    assert Days(load_zone(zone)).name(253_402_300_799_999_999) == day


@pytest.mark.parametrize(
    "name",
    [
        "Nowhere/Land",
        "../etc/passwd",
        "/etc/localtime",
        "America",
        "\0",
        "UTC\n",
        "x" * 5000,
        "é",
        " ",
    ],
)
def test_what_is_no_zone_is_refused(name):
    with pytest.raises(BadTimeZoneError) as raised:
        load_zone(name)
    assert (raised.value.field, raised.value.metadata) == ("time_zone", {"time_zone": name})
