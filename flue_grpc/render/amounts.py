"""Numbers, sizes, times and money as a person reads them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import tzinfo

    from google.protobuf.timestamp_pb2 import Timestamp

    from flue.agentindex.v1 import agent_index_pb2 as pb

_THOUSAND: Final = 1000
_UNITS: Final = ("", "k", "M", "G", "T", "P", "E")
_FULL: Final = "█"
_CENT: Final = 0.01
_LEAST_COST: Final = 1e-9  # what a token costs is more
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def counted(number: int, thing: str) -> str:
    """Write how many there are: ``0 hits``, ``1 hit``, ``2 hits``."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def short_number(number: int) -> str:
    """Write at most three digits and a unit: ``999``, ``1.2k``, ``35k``, ``4.0M``."""
    if number < _THOUSAND:
        return str(number)
    value, step = float(number), 0
    # 999.5 would be rounded up to four digits.
    while value >= _THOUSAND - 0.5 and step < len(_UNITS) - 1:
        value /= _THOUSAND
        step += 1
    digits = 1 if value < 10 - 0.05 else 0
    return f"{value:.{digits}f}{_UNITS[step]}"


def size(count: int) -> str:
    """Write a number of bytes: ``17 B``, ``1.2 kB``, ``35 MB``."""
    number = short_number(count)
    if number[-1].isdigit():
        return f"{number} B"
    return f"{number[:-1]} {number[-1]}B"


def money(row: pb.Summary | pb.UsageRow) -> str:
    """Write the recorded cost, below a cent to two digits; a dash where none is recorded."""
    if not row.HasField("cost_usd"):
        return "-"
    cost = row.cost_usd
    if not 0 < cost < _CENT:
        return f"${cost:,.2f}"
    cost = max(cost, _LEAST_COST)
    places = 1 - math.floor(math.log10(cost))
    return f"${cost:.{places}f}".rstrip("0")


def moment(timestamp: Timestamp, zone: tzinfo | None) -> str:
    """Write a time to the minute in ``zone``, None being this machine's; a dash when unset."""
    if not (timestamp.seconds or timestamp.nanos):
        return "-"
    return timestamp.ToDatetime(tzinfo=_utc()).astimezone(zone).strftime("%Y-%m-%d %H:%M")


def total_tokens(tokens: pb.TokenUsage) -> int:
    """Add the four buckets."""
    return tokens.input + tokens.output + tokens.cache_read + tokens.cache_write


def bar(value: float, most: float, width: int) -> str:
    """Draw ``value`` as a bar of at most ``width`` columns, to an eighth of one.

    What is not zero shows as at least one eighth.
    """
    if most <= 0 or value <= 0:
        return ""
    eighths = max(1, round(value / most * width * 8))
    full, rest = divmod(eighths, 8)
    return _FULL * full + (_EIGHTHS[rest] if rest else "")


def _utc() -> tzinfo:
    from datetime import UTC  # noqa: PLC0415 - only where a time is shown

    return UTC
