"""Cutting the messages of a line to what a page may hold (behaviour B6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from flue_grpc.limits import LABEL_BYTES, PAGE_MESSAGE_TEXT_BYTES, PAGE_TEXT_BYTES
from flue_grpc.text.clean import cut_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flue_grpc.agentindex.values import Message

_SURE_CODE_POINTS: Final = LABEL_BYTES // 4  # fit whatever they are


def cut_messages(
    messages: Iterable[Message], most: int = PAGE_MESSAGE_TEXT_BYTES
) -> tuple[tuple[Message, ...], int]:
    """Return a line's messages as a page shows them, and the bytes of their texts.

    A text keeps at most ``most`` bytes, all texts together PAGE_TEXT_BYTES:
    the later ones get what is left. ``text_size`` is that of the whole text.
    """
    shown = []
    left = PAGE_TEXT_BYTES
    for message in messages:
        size = utf8_size(message.text)
        if size <= min(left, most):
            text, shown_size = message.text, size
        else:
            text = cut_bytes(message.text, min(left, most))
            shown_size = utf8_size(text)
        left -= shown_size
        shown.append(_shown(message, text, size, is_cut=shown_size < size))
    return tuple(shown), PAGE_TEXT_BYTES - left


def utf8_size(text: str) -> int:
    """Return the bytes of ``text`` as UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def _shown(message: Message, text: str, size: int, *, is_cut: bool) -> Message:
    labels = (message.model, message.tool_name, message.call_id)
    if not is_cut and message.text_size == size and max(map(len, labels)) <= _SURE_CODE_POINTS:
        return message
    model, tool_name, call_id = (cut_bytes(label, LABEL_BYTES) for label in labels)
    return replace(
        message,
        text=text,
        model=model,
        tool_name=tool_name,
        call_id=call_id,
        truncated=is_cut,
        text_size=size,
    )
