"""Times as people and exports read them: RFC 3339 in UTC, to the microsecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def to_text(moment: int) -> str:
    """Write microseconds since 1970, such as ``2026-03-01T12:00:00.000001Z``."""
    text = (_EPOCH + moment * _MICROSECOND).isoformat(timespec="microseconds")
    return text.removesuffix("+00:00") + "Z"


def from_text(text: str) -> int:
    """Read what ``to_text`` wrote, or any RFC 3339 time; raises ValueError."""
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is None:
        raise ValueError(f"the time {text} names no time zone")
    return (parsed - _EPOCH) // _MICROSECOND
