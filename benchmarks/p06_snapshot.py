"""P6: Snapshot of 50 of 5,000 sessions over gRPC, against a unary echo of the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness import Goal, compare, interleave
from homes import home
from latency import p50, sample
from servers import echo, product

from flue.agentindex.v1 import agent_index_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield the ratio of the medians of the medians."""
    sessions = scale.pick(5_000, 500)
    path = home(scale.work, sessions // 250, sessions)
    request = agent_index_pb2.SnapshotRequest(limit=50)
    with product(path) as served, echo() as answer:
        served.swept()
        served.ranked()
        size = sum(response.ByteSize() for response in served.index.Snapshot(request))
        ours, floor = interleave(
            scale.rounds,
            (
                "Snapshot",
                "ms",
                lambda: p50(sample(lambda: list(served.index.Snapshot(request)), count=200)),
            ),
            ("echo", "ms", lambda: p50(sample(lambda: answer(size), count=200))),
        )
    goal = Goal("P6", f"Snapshot of 50 of {sessions}, {size} bytes, p50", "at most", 3.0)
    yield compare(goal, ours, floor)
