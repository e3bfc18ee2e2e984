"""The images of a message as the JSON text of their column (behaviour A1)."""

from __future__ import annotations

from typing import Final

import msgspec

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(tuple[str, ...] | None)


def encode_images(images: tuple[str, ...]) -> str:
    """Write the column; no images are an empty text."""
    return _ENCODER.encode(images).decode() if images else ""


def decode_images(text: str) -> tuple[str, ...]:
    """Read the column; a text that is no list of strings is one image itself."""
    if not text:
        return ()
    try:
        return _DECODER.decode(text) or ()
    except (msgspec.MsgspecError, RecursionError):
        return (text,)
