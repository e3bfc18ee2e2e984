"""Cutting the messages of a line to what a page may hold (behaviour B6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from flue_grpc.limits import LABEL_BYTES, PAGE_MESSAGE_TEXT_BYTES, PAGE_TEXT_BYTES
from flue_grpc.text.clean import cut_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flue_grpc.agentindex.values import Message


def cut_messages(messages: Iterable[Message]) -> tuple[tuple[Message, ...], int]:
    """Return a line's messages as a page shows them, and the bytes of their texts.

    A text keeps at most PAGE_MESSAGE_TEXT_BYTES, all texts together PAGE_TEXT_BYTES:
    the later ones get what is left. ``text_size`` is that of the whole text.
    """
    shown = []
    left = PAGE_TEXT_BYTES
    for message in messages:
        size = utf8_size(message.text)
        text = cut_bytes(message.text, min(left, PAGE_MESSAGE_TEXT_BYTES))
        shown_size = size if len(text) == len(message.text) else utf8_size(text)
        left -= shown_size
        shown.append(_shown(message, text, size, is_cut=shown_size < size))
    return tuple(shown), PAGE_TEXT_BYTES - left


def utf8_size(text: str) -> int:
    """Return the bytes of ``text`` as UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def _shown(message: Message, text: str, size: int, *, is_cut: bool) -> Message:
    return replace(
        message,
        text=text,
        model=cut_bytes(message.model, LABEL_BYTES),
        tool_name=cut_bytes(message.tool_name, LABEL_BYTES),
        call_id=cut_bytes(message.call_id, LABEL_BYTES),
        truncated=is_cut,
        text_size=size,
    )
