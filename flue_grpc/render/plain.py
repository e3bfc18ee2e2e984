"""Protobuf messages as plain values, for ``--json``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf.timestamp_pb2 import Timestamp

from flue.agentindex.v1 import agent_index_pb2 as ai

if TYPE_CHECKING:
    from google._upb._message import EnumDescriptor as UpbEnum
    from google._upb._message import FieldDescriptor as UpbField
    from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
    from google.protobuf.message import Message

    AnyField = FieldDescriptor | UpbField
    AnyEnum = EnumDescriptor | UpbEnum


def to_plain(message: Message) -> dict[str, Any]:
    """Turn a message into a dict with every field of it.

    Names are those of the proto, integers are numbers, enum values are their
    names in lower case without the enum's own, times are RFC 3339 in UTC, and
    what is absent is None.
    """
    return {field.name: _field(message, field) for field in message.DESCRIPTOR.fields}


def role_name(number: int) -> str:
    """Name a role; one that only newer servers know counts as unspecified."""
    return enum_name(ai.Role.DESCRIPTOR, number if number in ai.Role.values() else 0)


def kind_name(number: int) -> str:
    """Name a kind; one that only newer servers know counts as unspecified."""
    return enum_name(ai.Kind.DESCRIPTOR, number if number in ai.Kind.values() else 0)


def _field(message: Message, field: AnyField) -> Any:  # noqa: ANN401 - any JSON value
    value = getattr(message, field.name)
    if field.is_repeated:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            return dict(value)
        return [_value(field, each) for each in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _value(field, value)


def _value(field: AnyField, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, Timestamp):
        return value.ToJsonString()
    if field.message_type is not None:
        return to_plain(value)
    if field.enum_type is not None:
        return enum_name(field.enum_type, value)
    return value


def enum_name(enum: AnyEnum, number: int) -> str:
    """Name an enum value in lower case without its prefix, such as ``tool_call``."""
    known = enum.values_by_number.get(number)
    if known is None:
        return str(number)
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return known.name.removeprefix(prefix).lower()
