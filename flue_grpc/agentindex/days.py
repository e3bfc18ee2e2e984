"""Calendar days of instants in a time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from flue_grpc.errors import BadTimeZoneError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_DAY: Final = timedelta(days=1) // _MICROSECOND


def load_zone(name: str) -> tzinfo:
    """Return the zone of an IANA name, UTC for an empty one. Raises BadTimeZoneError."""
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadTimeZoneError(
            "the time zone is not in the IANA database", "time_zone", {"time_zone": name}
        ) from error


class Days:
    """Names the day of instants, at the cost of two comparisons while the day is the same."""

    def __init__(self, zone: tzinfo) -> None:
        """Go by the calendar of ``zone``."""
        self._zone = zone
        self._first = self._end = 0
        self._name = ""

    def name(self, time: int | None) -> str:
        """Return YYYY-MM-DD of microseconds since 1970, empty for None."""
        if time is None:
            return ""
        if not self._first <= time < self._end:
            self._move(time)
        return self._name

    def is_one_day(self, first: int, last: int) -> bool:
        """Whether all instants from ``first`` to ``last`` are surely of one day."""
        self.name(first)
        return last < self._end

    def _move(self, time: int) -> None:
        offset = self._offset(time)
        self._name = (_EPOCH + (time + offset) * _MICROSECOND).strftime("%Y-%m-%d")
        self._first = (time + offset) // _DAY * _DAY - offset
        self._end = self._first + _DAY
        if not self._offset(self._first) == offset == self._offset(self._end - 1):
            # The clocks change on this day, perhaps past midnight: only this instant is sure.
            self._first, self._end = time, time + 1

    def _offset(self, time: int) -> int:
        """Return how far local time is ahead of UTC, in microseconds."""
        try:
            local = (_EPOCH + time * _MICROSECOND).astimezone(self._zone)
        except OverflowError:
            return 0  # local time would be before the year 1 or after 9999
        return (local.utcoffset() or timedelta()) // _MICROSECOND
