"""Stores of any size over the wire, made of the same words each time."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from servers import Product

_WORDS = [f"w{number:04x}" for number in range(4_000)]
SEARCHED = _WORDS[100:1000:90]


def dice(seed: int = 1) -> random.Random:
    """Return seeded dice."""
    return random.Random(seed)


def text(dice: random.Random, size: int) -> str:
    """Return words, common ones more often, of about ``size`` characters."""
    words: list[str] = []
    left = size
    while left > 0:
        word = _WORDS[min(int(dice.paretovariate(0.6)) - 1, len(_WORDS) - 1)]
        words.append(word)
        left -= len(word) + 1
    return " ".join(words)


def fill(product: Product, session: str, count: int, size: int, seed: int = 1) -> None:
    """Make a session of ``count`` messages of about ``size`` characters."""
    from flue.store.v1 import store_pb2  # noqa: PLC0415 - peers use the texts alone

    thrown = dice(seed)
    product.store.CreateSession(store_pb2.CreateSessionRequest(id=session, title=session))
    for start in range(0, count, 1000):
        messages = [
            store_pb2.Message(role="user", content=text(thrown, size))
            for _ in range(min(1000, count - start))
        ]
        request = store_pb2.AppendMessagesRequest(session_id=session, messages=messages)
        product.store.AppendMessages(request)
