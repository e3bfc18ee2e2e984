"""Reading JSON values that may be of any type (formats §1.5): every function is total."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Final, cast

import msgspec

from flue_grpc.limits import LINE_BLOCKS
from flue_grpc.text.clean import REPLACEMENT, sanitize

if TYPE_CHECKING:
    from collections.abc import Callable

Stamp = str | int | float | None
"""A time as tools write it: ISO 8601, or a number since 1970."""

ABSENT: Final = msgspec.Raw()
DAMAGE: Final = (msgspec.MsgspecError, RecursionError)
"""What decoding raises; nesting counts on top of the stack, so it can fail anywhere."""
MAX_COUNT: Final = 2**63 - 1

_MICROSECOND: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_END: Final = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
_LAST: Final = (int(_END.timestamp()) + 1) * _MICROSECOND - 1
# Below these an epoch number is in seconds, in milliseconds (formats §1.6).
_SECONDS_END: Final = 10**11
_MILLISECONDS_END: Final = 10**14

# Asking forgiveness for other types costs less than looking at the type each time.
_from_iso: Final = cast("Callable[[Stamp], datetime]", datetime.fromisoformat)
_STRING_DECODER: Final = msgspec.json.Decoder(str).decode
_LIST_DECODER: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_SHORT_LIST_BYTES: Final = 64 * 1024  # all its elements take 2 MB at most
_QUOTE: Final = ord('"')
_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\."
)
_SHORT_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def time_of(stamp: Stamp) -> int | None:
    """Return microseconds since 1970 UTC, None when it is no time in 1970 to 9999.

    A time without a zone is UTC; digits beyond the microsecond are cut (formats §1.6).
    """
    try:
        elapsed = _from_iso(stamp) - _EPOCH
    except (TypeError, ValueError):
        # No text, no time, or one without a zone.
        return _odd_time(stamp)
    time = (elapsed.days * 86400 + elapsed.seconds) * _MICROSECOND + elapsed.microseconds
    return time if 0 <= time <= _LAST else None


def _odd_time(stamp: Stamp) -> int | None:
    if not isinstance(stamp, str):
        return _epoch_time(stamp)
    try:
        return time_of(_from_iso(stamp).replace(tzinfo=UTC).isoformat())
    except ValueError:
        pass
    text = stamp.strip().upper()
    if text.isdecimal() and text.isascii():
        return _epoch_time(int(text)) if len(text) < len(str(MAX_COUNT)) else None
    return time_of(text) if text != stamp else None


def _epoch_time(number: float | None) -> int | None:
    if number is None or isinstance(number, bool) or not 0 <= number <= _LAST:
        return None
    if number < _SECONDS_END:
        scale = _MICROSECOND
    elif number < _MILLISECONDS_END:
        scale = 1000
    else:
        scale = 1
    time = number * scale if isinstance(number, int) else round(number * scale)
    return time if time <= _LAST else None


def is_string(raw: msgspec.Raw) -> bool:
    """Say whether ``raw`` is a JSON string."""
    view = memoryview(raw)
    return len(view) > 0 and view[0] == _QUOTE


def is_prose(raw: msgspec.Raw) -> bool:
    """Say whether ``raw`` is a JSON string that is not empty."""
    view = memoryview(raw)
    return len(view) > 2 and view[0] == _QUOTE  # noqa: PLR2004 - the two quotes


def text_of(raw: msgspec.Raw) -> str:
    """Return the text of a JSON string, empty for any other value."""
    if not is_string(raw):
        return ""
    try:
        text = _STRING_DECODER(raw)
    except msgspec.MsgspecError:
        # Only its UTF-8 can be wrong: the line was valid JSON around it.
        text = _STRING_DECODER(_utf8(raw))
    return sanitize(text)


def items_of(raw: msgspec.Raw) -> list[msgspec.Raw] | None:
    """Return the first LINE_BLOCKS elements of a JSON array, None for any other value."""
    try:
        if len(memoryview(raw)) <= _SHORT_LIST_BYTES:
            return _LIST_DECODER(raw)[:LINE_BLOCKS]
        head = _head_decoder()(raw)
    except DAMAGE:
        return None
    return [item for item in msgspec.structs.astuple(head) if item is not ABSENT]


@cache
def _head_decoder() -> Callable[[msgspec.Raw], msgspec.Struct]:
    """Make what decodes the first elements of an array; those behind are passed over unmade."""
    items = [(f"item_{number}", msgspec.Raw, ABSENT) for number in range(LINE_BLOCKS)]
    return msgspec.json.Decoder(msgspec.defstruct("_Head", items, array_like=True, gc=False)).decode


def members_of(raw: msgspec.Raw, names: tuple[str, ...]) -> dict[str, msgspec.Raw] | None:
    """Return which of ``names`` a JSON object has, None for any other value.

    However many other members there are, they are passed over unmade.
    """
    try:
        members = _members_decoder(names)(raw)
    except DAMAGE:
        return None
    values = msgspec.structs.astuple(members)
    pairs = zip(names, values, strict=True)
    return {name: value for name, value in pairs if value is not ABSENT}


@cache
def _members_decoder(names: tuple[str, ...]) -> Callable[[msgspec.Raw], msgspec.Struct]:
    fields = [
        (f"member_{number}", msgspec.Raw, msgspec.field(default=ABSENT, name=name))
        for number, name in enumerate(names)
    ]
    return msgspec.json.Decoder(msgspec.defstruct("_Members", fields, gc=False)).decode


def text_or_json(raw: msgspec.Raw) -> str:
    """Return the text of a JSON string, any other value as compact JSON."""
    return text_of(raw) if is_string(raw) else compact_json(raw)


def compact_json(raw: msgspec.Raw) -> str:
    """Return a JSON value without needless white space and escapes (behaviour B5).

    Keys keep their order and numbers their digits. Empty for an absent value.
    """
    if not memoryview(raw):
        return ""
    data = bytes(raw)
    # A value that was read nearer to the bottom of the stack can be nested too deeply here.
    with suppress(*DAMAGE):
        data = msgspec.json.format(data, indent=-1)
    text = data.decode("utf-8", "replace")
    if "\\u" in text or "\\/" in text:
        text = _ESCAPE.sub(_plain, text)
    return text


def _plain(match: re.Match[str]) -> str:
    escape = match[0]
    if escape == "\\/":
        return "/"
    if escape[1] != "u":
        return escape
    if len(escape) > len("\\uXXXX"):
        return chr(0x10000 + ((int(escape[2:6], 16) - 0xD800) << 10) + int(escape[8:], 16) - 0xDC00)
    char = chr(int(escape.removeprefix("\\u"), 16))
    if char < " " or char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES.get(char, escape.lower())
    return REPLACEMENT if "\ud800" <= char <= "\udfff" else char


def _utf8(raw: msgspec.Raw) -> bytes:
    return bytes(raw).decode("utf-8", "replace").encode()
