"""The size of a message as protobuf writes it, without making one (contract "Store").

Every field of the contract's Message has a number below 16, so each tag is one byte. A
text that is empty is left out; images and the texts of a map entry are written even then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flue_grpc import limits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flue_grpc.store.values import Draft, ToolCall

_ONE_BYTE: Final = 0x7F  # the largest length whose varint is one byte
_NUMBER: Final = 1 + 9  # an id, at most 63 bits
_TIME: Final = 2 + (1 + 10) + (1 + 5)  # a Timestamp, also before 1970
_SESSION_ID: Final = 1 + 2 + 4 * limits.SESSION_ID_CODE_POINTS
# What the Store adds: it is not known yet when a message is checked, and is kept free.
ADDED: Final = _NUMBER + _SESSION_ID + _TIME


def draft_size(draft: Draft) -> int:
    """Return the bytes of the serialised message without id, session and time."""
    size = _text(draft.role) + _text(draft.content)
    # Most messages have no more.
    if draft.provider or draft.tool_call_id or draft.name:
        size += _text(draft.provider) + _text(draft.tool_call_id) + _text(draft.name)
    if draft.images:
        size += _repeated(map(_utf8, draft.images))
    if draft.tool_calls:
        size += _repeated(map(_call, draft.tool_calls))
    return size


def _call(call: ToolCall) -> int:
    """Return the bytes of a ToolCall; its ``function`` is always written."""
    size = _text(call.id) + _text(call.type)
    size += _field(_text(call.name) + _text(call.arguments))
    if call.extra:
        size += _repeated(_field(_utf8(key)) + _field(_utf8(text)) for key, text in call.extra)
    return size


def _text(text: str) -> int:
    """Return the bytes of a text's field, 0 when it is left out."""
    size = len(text) if text.isascii() else len(text.encode())
    if size <= _ONE_BYTE:
        return size and size + 2
    return size + 1 + (size.bit_length() + 6) // 7


def _field(size: int) -> int:
    """Return the bytes of a field with ``size`` bytes in it: tag, length and those."""
    return size + 2 if size <= _ONE_BYTE else size + 1 + (size.bit_length() + 6) // 7


def _repeated(sizes: Iterable[int]) -> int:
    return sum(map(_field, sizes))


def _utf8(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
