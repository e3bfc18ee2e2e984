"""P15: the 99th percentile of a unary call while four clients stream at full speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import stores
from harness import Goal, compare
from homes import home
from latency import p50, p99, sample, series
from ranked_homes import ranked_home
from servers import load, product

from flue.store.v1 import store_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale
    from servers import Product

_SECONDS = 2
_CLIENTS = 4


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield the ratios to the idle server; the medians are for information."""
    path = home(scale.work, 60, 100)
    with product(path, "--no-ranked-index") as served:
        stores.fill(served, "s", scale.pick(10_000, 2_000), 500)
        served.swept()
        sample(lambda: _call(served), count=200)
        yield from _beside(served, scale, "streams", "lists", "s")
        yield from _beside(served, scale, "searches without a hit", "searches", "no such words")
    yield from _beside_build(scale)


def _beside(served: Product, scale: Scale, what: str, kind: str, subject: str) -> Iterator[Figure]:
    quiet: list[list[float]] = []
    busy: list[list[float]] = []
    for _ in range(min(scale.rounds, 5)):
        quiet.append(sample(lambda: _call(served), seconds=_SECONDS))
        with load(served, kind, _CLIENTS, subject):
            busy.append(sample(lambda: _call(served), seconds=_SECONDS))
    yield from _ratios(f"beside {_CLIENTS} {what}", busy, quiet)


def _beside_build(scale: Scale) -> Iterator[Figure]:
    quiet: list[list[float]] = []
    busy: list[list[float]] = []
    path = ranked_home(scale.work, scale.pick(100_000, 20_000))
    for _ in range(min(scale.rounds, 3)):
        with product(path) as served:
            stores.fill(served, "s", 10, 500)
            served.swept()
            busy.append(sample(lambda served=served: _call(served), seconds=_SECONDS))
        with product(path, "--no-ranked-index") as served:
            stores.fill(served, "s", 10, 500)
            served.swept()
            quiet.append(sample(lambda served=served: _call(served), seconds=_SECONDS))
    yield from _ratios("beside a RANKED build", busy, quiet)


def _call(served: Product) -> object:
    return served.store.GetSession(store_pb2.GetSessionRequest(id="s"))


def _ratios(what: str, busy: list[list[float]], quiet: list[list[float]]) -> Iterator[Figure]:
    for name, part, goal in (
        ("p99", p99, Goal("P15", f"unary p99 {what}", "at most", 4.0)),
        ("p50", p50, Goal("P15", f"unary p50 {what}")),
    ):
        yield compare(
            goal,
            series(f"{name} beside", [part(samples) for samples in busy]),
            series(f"{name} idle", [part(samples) for samples in quiet]),
        )
