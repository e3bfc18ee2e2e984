"""P16: unary calls while a cold sweep runs, against the idle server and a spinning process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness import Goal, compare
from homes import home, size_of
from latency import p50, p99, sample, series, while_true
from servers import product, spinner

from flue.agentindex.v1 import agent_index_pb2
from flue.store.v1 import store_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale
    from servers import Product

_ASK_EVERY = 50


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield both ratios."""
    path = home(scale.work, *((600, 1000) if scale.name == "full" else (60, 100)))
    during: list[list[float]] = []
    quiet: list[list[float]] = []
    spun: list[list[float]] = []
    for _ in range(min(scale.rounds, 5)):
        with product(path, "--no-ranked-index") as served:
            served.store.CreateSession(store_pb2.CreateSessionRequest(id="s"))
            during.append(_while_building(served))
            quiet.append(sample(lambda served=served: _call(served), seconds=2))
            with spinner():
                spun.append(sample(lambda served=served: _call(served), seconds=2))
    size = f"{size_of(path) / 1e6:.0f} MB"
    yield compare(
        Goal("P16", f"unary p50 in a sweep of {size}", "at most", 1.25),
        series("p50 in the sweep", [p50(samples) for samples in during]),
        series("p50 idle", [p50(samples) for samples in quiet]),
    )
    yield compare(
        Goal("P16", f"unary p99 in a sweep of {size}", "at most", 1.4),
        series("p99 in the sweep", [p99(samples) for samples in during]),
        series("p99 beside a spinner", [p99(samples) for samples in spun]),
    )


def _call(served: Product) -> object:
    return served.store.GetSession(store_pb2.GetSessionRequest(id="s"))


def _while_building(served: Product) -> list[float]:
    samples: list[float] = []
    request = agent_index_pb2.SnapshotRequest(limit=1)
    while any(response.building for response in served.index.Snapshot(request)):
        rest = iter(range(_ASK_EVERY))
        samples += while_true(lambda: _call(served), lambda rest=rest: next(rest, None) is not None)
    return samples
