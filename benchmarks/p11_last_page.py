"""P11: the last 100 messages of a transcript of 1 GB, against those of one of 10 MB."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from harness import Goal, compare, interleave
from homes import home, transcript_of
from latency import p50, sample
from servers import product

from flue.agentindex.v1 import agent_index_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale
    from servers import Product


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield the ratio of the medians over the wire."""
    large = scale.pick(1000, 100)
    source = home(scale.work, 60, 100)
    with tempfile.TemporaryDirectory(dir=scale.work) as temporary:
        path = Path(temporary)
        ids = [transcript_of(source, path, size, number) for number, size in enumerate((large, 10))]
        with product(path, "--no-ranked-index") as served:
            served.swept()
            ours, small = interleave(
                scale.rounds,
                (f"{large} MB", "ms", lambda: _last_page(served, ids[0])),
                ("10 MB", "ms", lambda: _last_page(served, ids[1])),
            )
    yield compare(Goal("P11", f"last 100 messages of {large} MB, p50", "at most", 1.5), ours, small)


def _last_page(served: Product, session: str) -> float:
    request = agent_index_pb2.ReadPageRequest(
        tool="claude", id=session, direction=agent_index_pb2.DIRECTION_BACKWARD, limit=100
    )
    return p50(sample(lambda: served.index.ReadPage(request), count=50))
