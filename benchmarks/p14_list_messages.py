"""P14: ListMessages of a long session: items per second, and CPU against the SQL alone."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import stores
from harness import Goal, compare, interleave, seconds
from servers import product

from flue.store.v1 import store_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale
    from servers import Product


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield both ratios."""
    count = scale.pick(10_000, 2_000)
    home = scale.work / "home-none"
    home.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=scale.work) as data,
        product(home, data=Path(data)) as served,
    ):
        stores.fill(served, "s", count, 500)
        request = store_pb2.ListMessagesRequest(session_id="s")

        def stream() -> float:
            taken = seconds(lambda: [None for _ in served.store.ListMessages(request)])
            return count / taken

        batched, single = interleave(
            scale.rounds,
            ("in batches", "msg/s", stream),
            ("one per response", "msg/s", lambda: _one_by_one(served, scale.pick(400, 100))),
        )
        goal = Goal("P14", f"ListMessages of {count}", "at least", 20.0)
        yield compare(goal, batched, single)
        ours, sql = interleave(
            scale.rounds,
            ("server CPU", "ms", lambda: _server_cpu(served, request)),
            ("SQL alone", "ms", lambda: _sql(Path(data) / "store.db")),
        )
        yield compare(Goal("P14", "server CPU of the same list", "at most", 3.0), ours, sql)


def _one_by_one(served: Product, count: int) -> float:
    """Fetch one message per response, by limit and token."""
    token, start = "", time.perf_counter()
    for _ in range(count):
        request = store_pb2.ListMessagesRequest(session_id="s", limit=1, page_token=token)
        (response,) = served.store.ListMessages(request)
        token = response.next_page_token
    return count / (time.perf_counter() - start)


def _server_cpu(served: Product, request: store_pb2.ListMessagesRequest) -> float:
    """Return the mean over enough lists for the clock tick of the kernel."""
    repeats = 20
    before = _ticks(served)
    for _ in range(repeats):
        for _response in served.store.ListMessages(request):
            pass
    return (_ticks(served) - before) * 10 / repeats


def _ticks(served: Product) -> int:
    fields = Path(f"/proc/{served.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def _sql(path: Path) -> float:
    """Read every column of the session, and nothing else."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    start = time.process_time()
    repeats = 20
    for _ in range(repeats):
        connection.execute("SELECT * FROM messages WHERE session_id = 's' ORDER BY id").fetchall()
    return (time.process_time() - start) * 1000 / repeats
