"""Lines as typed records, whatever a line holds (formats §1.2, §1.5, §8.10).

A record is a msgspec struct with the members that an adapter looks at. A sound line is
decoded in one pass, and bodies that nobody needs are not. When that fails, the line is
repaired, and members of a wrong type count as missing.
"""

from __future__ import annotations

import re
from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Final,
    Generic,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import msgspec

from flue_grpc.agentindex.adapters._json_values import (
    DAMAGE,
    MAX_COUNT,
    items_of,
    members_of,
    text_of,
)
from flue_grpc.agentindex.json_repair import whole_objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

R = TypeVar("R", bound=msgspec.Struct)

Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]
"""A number of tokens; what is no such number counts as missing."""

_DIGITS: Final = re.compile(rb"[0-9]{1,19}")
_NUMBER_STARTS: Final = b"-0123456789"


class Records(Generic[R]):
    """Decodes lines into records of one type."""

    __slots__ = ("_type", "decode")

    def __init__(self, record_type: type[R]) -> None:
        """Compile the decoder. ``decode`` is for the line that is sound: it raises DAMAGE."""
        self._type = record_type
        self.decode: Callable[[bytes | memoryview], R] = msgspec.json.Decoder(record_type).decode

    def all_of(self, line: bytes | memoryview) -> Iterator[R]:
        """Yield the records of a line, of a damaged one those before the damage."""
        try:
            yield self.decode(line)
        except DAMAGE:
            yield from self.rescue(line)

    def rescue(self, line: bytes | memoryview) -> Iterator[R]:
        """Yield the records of a line that ``decode`` refuses."""
        data = bytes(line)
        return map(self.one_of, whole_objects(data)) if b"}" in data else iter(())

    def one_of(self, data: bytes) -> R:
        """Return the record of one whole object, whatever the types of its members."""
        try:
            return self.decode(data)
        except DAMAGE:
            return coerce(msgspec.Raw(data), self._type)


def coerce(raw: msgspec.Raw, record_type: type[R]) -> R:
    """Return a record of what has the right type in ``raw``; all else is as if missing."""
    members = members_of(raw) or {}
    values = {}
    for field in msgspec.structs.fields(record_type):
        member = members.get(field.encode_name)
        if member is not None:
            value = _shape_of(field.type).read(member)
            if value is not None:
                values[field.name] = value
    return record_type(**values)


class _Shape:
    """What a member may be: the alternatives of its annotation."""

    __slots__ = ("_count", "_flag", "_items", "_number", "_raw", "_record", "_text")

    def __init__(self, annotation: object) -> None:
        kinds = _alternatives(annotation)
        self._raw = msgspec.Raw in kinds
        self._text = str in kinds
        self._flag = bool in kinds
        self._count = Count in kinds
        self._number = float in kinds
        self._record = next(filter(None, map(_record_type, kinds)), None)
        lists = [kind for kind in kinds if get_origin(kind) is list]
        self._items = _shape_of(get_args(lists[0])[0]) if lists else None

    def read(self, raw: msgspec.Raw) -> object:
        """Return the value, None when it is of no type that may be here."""
        if self._raw:
            return raw
        data = bytes(raw)
        start = data[:1]
        if start == b'"':
            return self._from_string(raw)
        if start == b"{":
            return coerce(raw, self._record) if self._record else None
        if start == b"[":
            return self._from_array(raw)
        if start in b"tf":
            return data == b"true" if self._flag else None
        return self._from_number(data) if start in _NUMBER_STARTS else None

    def _from_string(self, raw: msgspec.Raw) -> object:
        if self._text:
            return text_of(raw)
        if self._record is not None and hasattr(self._record, "of_text"):
            return self._record.of_text(raw)
        return _digits_of(text_of(raw).encode()) if self._count else None

    def _from_array(self, raw: msgspec.Raw) -> object:
        if self._items is None:
            return None
        values = (self._items.read(item) for item in items_of(raw) or ())
        return [value for value in values if value is not None]

    def _from_number(self, data: bytes) -> object:
        if self._count:
            return _count_of(data)
        return float(data) if self._number else None


def _digits_of(data: bytes) -> int | None:
    count = int(data) if _DIGITS.fullmatch(data) else -1
    return count if 0 <= count <= MAX_COUNT else None


def _count_of(literal: bytes) -> int | None:
    """Read a JSON number that has an integral value, however it is written."""
    if literal.lstrip(b"-").isdigit():
        return _digits_of(literal)
    number = float(literal)
    return int(number) if number.is_integer() and 0 <= number <= MAX_COUNT else None


def _alternatives(annotation: object) -> tuple[object, ...]:
    if get_origin(annotation) in {Union, UnionType}:
        return tuple(kind for kind in get_args(annotation) if kind is not NoneType)
    return (annotation,)


def _record_type(kind: object) -> type[msgspec.Struct] | None:
    return kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None


@cache
def _shape_of(annotation: object) -> _Shape:
    return _Shape(annotation)
