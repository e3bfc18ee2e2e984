"""P15: the 99th percentile of a unary call while four clients stream at full speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import stores
from harness import Goal, compare
from latency import p50, p99, sample, series
from servers import load, product

from flue.store.v1 import store_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield the ratio to the idle server; the medians are for information."""
    home = scale.work / "home-none"
    home.mkdir(exist_ok=True)
    request = store_pb2.GetSessionRequest(id="s")
    quiet: list[list[float]] = []
    busy: list[list[float]] = []
    with product(home) as served:
        stores.fill(served, "s", scale.pick(10_000, 2_000), 500)

        def call() -> object:
            return served.store.GetSession(request)

        sample(call, count=200)
        for _ in range(min(scale.rounds, 5)):
            quiet.append(sample(call, seconds=2))
            with load(served, "lists", 4, "s"):
                busy.append(sample(call, seconds=2))
    for what, part, goal in (
        ("p99", p99, Goal("P15", "unary p99 beside 4 streams", "at most", 4.0)),
        ("p50", p50, Goal("P15", "unary p50 beside 4 streams")),
    ):
        yield compare(
            goal,
            series(f"{what} beside", [part(samples) for samples in busy]),
            series(f"{what} idle", [part(samples) for samples in quiet]),
        )
