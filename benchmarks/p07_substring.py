"""P7: SUBSTRING search that finds nothing, against ripgrep on one thread over the same files.

CPU is compared, of the server and of the whole rg: the wall time of a call ends before
rg's, which has a process to start and to end.
"""

from __future__ import annotations

import shutil
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from harness import Goal, compare, interleave
from homes import home, size_of
from processes import Command
from servers import product, without_scanner

from flue.agentindex.v1 import agent_index_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness import Figure, Scale
    from servers import Product

_ASCII = "qzxjvw gone"
_OTHERS = ("qzxjvwk gone", 'said "qzxjvw" then', "größe qzxjvw", "数据库之外", "приветик")


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield the ratio of each query, with the standard library and with the scanner."""
    if not shutil.which("rg"):
        raise SystemExit("P7 needs ripgrep: apt install ripgrep")
    path = home(scale.work, *((64, 95) if scale.name == "full" else (20, 33)))
    size = f"{size_of(path) / (1 << 20):.0f} MiB"
    with without_scanner(path, scale.work) as served:
        served.ranked()
        yield _against_rg(scale, path, served, _ASCII, Goal("P7", f"ASCII, {size}", "at most", 4.0))
        for query in _OTHERS:
            goal = Goal("P7", f"{query!r}, {size}", "at most", 9.0)
            yield _against_rg(scale, path, served, query, goal)
    with without_scanner(path, scale.work, "--no-ranked-index") as served:
        served.swept()
        goal = Goal("P7", f"ASCII, {size}, nothing known of the files", "at most", 9.0)
        yield _against_rg(scale, path, served, _ASCII, goal)
    if find_spec("hyperscan"):
        with product(path) as served:
            served.ranked()
            goal = Goal("P7", f"ASCII, {size}, with the scanner", "at most", 1.9)
            yield _against_rg(scale, path, served, _ASCII, goal)


def _against_rg(scale: Scale, path: Path, served: Product, query: str, goal: Goal) -> Figure:
    flags = ("-j1", "-i", "-F", "--hidden", "--no-messages", "-c")
    rg = Command(["rg", *flags, query, str(path)], codes=(0, 1))
    ours, floor = interleave(
        scale.rounds,
        ("Search", "ms CPU", partial(_search, served, query)),
        ("rg -j1", "ms CPU", lambda: rg.run().cpu * 1000),
    )
    return compare(goal, ours, floor)


def _search(served: Product, query: str) -> float:
    request = agent_index_pb2.SearchRequest(query=query, max_bytes=1 << 40)
    before = served.cpu_seconds()
    for response in served.index.Search(request):
        assert not response.hits
    return (served.cpu_seconds() - before) * 1000
