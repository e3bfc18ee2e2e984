"""W3C Trace Context: which trace a call belongs to, from its ``traceparent`` metadata."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

TRACEPARENT: Final = "traceparent"
# A later version may add fields after the flags, and keeps these four first.
_PATTERN: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_FORBIDDEN_VERSION: Final = "ff"
_FIRST_VERSION: Final = "00"


class TraceContext(msgspec.Struct, frozen=True):
    """The trace and the span that made the call, in lower-case hexadecimal."""

    trace_id: str
    span_id: str
    sampled: bool


def parse_traceparent(value: str) -> TraceContext | None:
    """Read a ``traceparent``; None when it is of bad form, which never fails a call."""
    found = _PATTERN.fullmatch(value)
    if found is None:
        return None
    version, trace_id, span_id, flags, rest = found.groups()
    if version == _FORBIDDEN_VERSION or (version == _FIRST_VERSION and rest):
        return None
    if not (int(trace_id, 16) and int(span_id, 16)):
        return None
    return TraceContext(trace_id, span_id, bool(int(flags, 16) & 1))


def trace_of(metadata: Iterable[tuple[str, str | bytes]]) -> TraceContext | None:
    """Find the trace of a call; several ``traceparent`` entries are none."""
    values = [value for key, value in metadata if key == TRACEPARENT]
    if len(values) != 1 or not isinstance(values[0], str):
        return None
    return parse_traceparent(values[0])
