"""P12: one durable append over gRPC, against one fdatasync and one unary echo."""

from __future__ import annotations

import os
from itertools import count
from typing import TYPE_CHECKING

from harness import Goal, Series, compare, interleave
from latency import p50, sample
from servers import echo, product

from flue.store.v1 import store_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale

_TEXT = "what the agent said about the timeout of the gateway " * 9


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield the ratio of the medians."""
    home, data = scale.work / "home-none", scale.work / "append-data"
    home.mkdir(exist_ok=True)
    with product(home, data=data) as served, echo() as answer:
        session = f"s{os.getpid()}"
        served.store.CreateSession(store_pb2.CreateSessionRequest(id=session))
        numbers = count()

        def append() -> None:
            message = store_pb2.Message(role="user", content=f"{_TEXT}{next(numbers)}")
            served.store.AppendMessage(
                store_pb2.AppendMessageRequest(session_id=session, message=message)
            )

        ours, sync, wire = interleave(
            scale.rounds,
            ("AppendMessage", "ms", lambda: p50(sample(append, count=300))),
            ("fdatasync", "ms", lambda: _sync(scale)),
            ("echo", "ms", lambda: p50(sample(lambda: answer(600), count=300))),
        )
    pairs = zip(sync.samples, wire.samples, strict=True)
    floor = Series("fdatasync + echo", "ms", tuple(a + b for a, b in pairs))
    yield compare(Goal("P12", "durable append, one client, p50", "at most", 2.2), ours, floor)


def _sync(scale: Scale) -> float:
    """Overwrite and sync 8 KiB, as a commit to the write-ahead log does."""
    path = scale.work / "sync"
    path.write_bytes(bytes(1 << 20))
    descriptor = os.open(path, os.O_WRONLY)
    os.fsync(descriptor)
    places = count()

    def once() -> None:
        os.pwrite(descriptor, bytes(8192), next(places) % 100 * 8192)
        os.fdatasync(descriptor)

    try:
        return p50(sample(once, count=300))
    finally:
        os.close(descriptor)
