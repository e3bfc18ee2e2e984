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
from flue_grpc.limits import LARGE_LINE_BYTES, LARGE_LINE_COMMAS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flue_grpc.agentindex.lines import LineBlock

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

    def decode_any(self, line: bytes | memoryview) -> R:
        """Decode as ``decode`` does, but refuse a large line of very many values.

        Read member by member it is no larger than what an adapter looks at.
        """
        if len(line) > LARGE_LINE_BYTES and bytes(line).count(b",") > LARGE_LINE_COMMAS:
            raise msgspec.ValidationError("the line has too many values")
        return self.decode(line)

    def decoder_for(self, block: LineBlock) -> Callable[[bytes | memoryview], R]:
        """Return what decodes the lines of a block, and raises DAMAGE for some."""
        return self.decode if len(block.view) <= LARGE_LINE_BYTES else self.decode_any

    def all_of(self, line: bytes | memoryview) -> Iterator[R]:
        """Yield the records of a line, of a damaged one those before the damage."""
        try:
            yield self.decode_any(line)
        except DAMAGE:
            yield from self.rescue(line)

    def rescue(self, line: bytes | memoryview) -> Iterator[R]:
        """Yield the records of a line that ``decode`` refuses."""
        data = bytes(line)
        return map(self.one_of, whole_objects(data)) if b"}" in data else iter(())

    def one_of(self, data: bytes) -> R:
        """Return the record of one whole object, whatever the types of its members."""
        try:
            return self.decode_any(data)
        except DAMAGE:
            return coerce(msgspec.Raw(data), self._type)


def coerce(raw: msgspec.Raw, record_type: type[R]) -> R:
    """Return a record of what has the right type in ``raw``; all else is as if missing."""
    names, encoded, shapes = _plan_of(record_type)
    members = members_of(raw, encoded) or {}
    values = {}
    for name, encoded_name, shape in zip(names, encoded, shapes, strict=True):
        member = members.get(encoded_name)
        if member is not None:
            value = shape.read(member)
            if value is not None:
                values[name] = value
    return record_type(**values)


@cache
def _plan_of(
    record_type: type[msgspec.Struct],
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[_Shape, ...]]:
    """Return the names of the members, those that JSON has for them, and what they may be."""
    fields = msgspec.structs.fields(record_type)
    return (
        tuple(field.name for field in fields),
        tuple(field.encode_name for field in fields),
        tuple(_shape_of(field.type) for field in fields),
    )


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
        start = bytes(memoryview(raw)[:1])
        if start == b'"':
            return self._from_string(raw)
        if start == b"{":
            return coerce(raw, self._record) if self._record else None
        if start == b"[":
            return self._from_array(raw)
        if start in b"tf":
            return start == b"t" if self._flag else None
        return self._from_number(bytes(raw)) if start in _NUMBER_STARTS else None

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
