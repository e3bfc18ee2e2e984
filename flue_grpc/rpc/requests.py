"""Checks of request fields that need no domain to be wrong (contract, table of errors).

Each function returns what the domain takes, or raises the error that names the field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from flue_grpc.errors import (
    BadCombinationError,
    BadDirectionError,
    BadEnumError,
    BadLimitError,
    BadOffsetError,
    BadTimeError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from google.protobuf.message import Message
    from google.protobuf.timestamp_pb2 import Timestamp

_FIRST_SECOND: Final = -62_135_596_800  # 0001-01-01
_LAST_SECOND: Final = 253_402_300_799  # 9999-12-31
T = TypeVar("T")

_NANOS: Final = 1_000_000_000


def limit(value: int, default: int = 0, most: int | None = None) -> int:
    """Read a limit: 0 is ``default``, more than ``most`` is ``most``."""
    if value < 0:
        raise BadLimitError("a limit is not negative", "limit")
    wanted = value or default
    return wanted if most is None else min(wanted, most)


def not_negative(value: int, field: str) -> int:
    """Read a window or a byte budget."""
    if value < 0:
        raise BadLimitError("a window or a number of bytes is not negative", field)
    return value


def offset(value: int, field: str = "offset") -> int:
    """Read an offset or index."""
    if value < 0:
        raise BadOffsetError("an offset or index is not negative", field)
    return value


def optional_offset(request: Any) -> int | None:  # noqa: ANN401  (several have one)
    """Read the offset of a request that need not have one."""
    return offset(request.offset) if request.HasField("offset") else None


def direction(value: int, names: Mapping[int, T]) -> T:
    """Translate a direction."""
    if value not in names:
        raise BadDirectionError("the direction is not one of the enum", metadata=_shown(value))
    return names[value]


def known(value: int, names: Mapping[int, T], field: str) -> T:
    """Translate an enum value; ``names`` holds every value that may be sent."""
    if value not in names:
        raise BadEnumError("the value is not one of the enum", field, _shown(value))
    return names[value]


def all_known(values: Iterable[int], names: Mapping[int, T], field: str) -> tuple[T, ...]:
    """Translate a list of enum values."""
    return tuple(known(value, names, field) for value in values)


def span(request: Message) -> tuple[int | None, int | None]:
    """Read ``since`` and ``until`` in microseconds since 1970, None where not set.

    Both are rounded up, so that since ≤ t < until says the same of every t in
    whole microseconds.
    """
    times: list[int | None] = []
    exact: list[tuple[int, int]] = []
    for field in ("since", "until"):
        if not request.HasField(field):
            times.append(None)
            continue
        value: Timestamp = getattr(request, field)
        if not _FIRST_SECOND <= value.seconds <= _LAST_SECOND or not 0 <= value.nanos < _NANOS:
            raise BadTimeError("the time is outside of 0001-01-01 to 9999-12-31", field)
        exact.append((value.seconds, value.nanos))
        times.append(value.seconds * 1_000_000 - (-value.nanos // 1000))
    if len(exact) == len(times) and exact[0] >= exact[1]:
        raise BadCombinationError("since must be before until", "since")
    return times[0], times[1]


def _shown(value: int) -> Mapping[str, str]:
    return {"value": str(value)}
