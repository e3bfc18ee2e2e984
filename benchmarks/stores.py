"""Stores of any size over the wire, made of the same words each time."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from flue.store.v1 import store_pb2

if TYPE_CHECKING:
    from servers import Product

_WORDS = [f"w{number:04x}" for number in range(4_000)]


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
    dice = random.Random(seed)
    product.store.CreateSession(store_pb2.CreateSessionRequest(id=session, title=session))
    for start in range(0, count, 1000):
        messages = [
            store_pb2.Message(role="user", content=text(dice, size))
            for _ in range(min(1000, count - start))
        ]
        request = store_pb2.AppendMessagesRequest(session_id=session, messages=messages)
        product.store.AppendMessages(request)
