"""P18: what 200 idle live streams cost: latency of unary calls, and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness import Goal, absolute, compare
from latency import p99, sample, series
from servers import load, product

from flue.store.v1 import store_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale

from harness import Series

_STREAMS = 200


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield both."""
    home = scale.work / "home-none"
    home.mkdir(exist_ok=True)
    request = store_pb2.GetSessionRequest(id="s")
    quiet: list[float] = []
    beside: list[float] = []
    grown: list[float] = []
    for _ in range(min(scale.rounds, 5)):
        with product(home) as served:
            served.store.CreateSession(store_pb2.CreateSessionRequest(id="s"))

            def call() -> object:
                return served.store.GetSession(request)

            sample(call, count=500)
            quiet.append(p99(sample(call, seconds=2)))
            before = served.memory_mib()
            with load(served, "follows", _STREAMS, "s"):
                beside.append(p99(sample(call, seconds=2)))
                grown.append(served.memory_mib() - before)
    yield compare(
        Goal("P18", f"unary p99 beside {_STREAMS} idle streams", "at most", 1.3),
        series("p99 beside", beside),
        series("p99 without", quiet),
    )
    goal = Goal("P18", f"memory of {_STREAMS} idle streams", "at most", 20.0)
    yield absolute(goal, Series("server", "MiB more", tuple(grown)))
