"""P14: ListMessages of a long session, against one item per response and the SQL alone."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import stores
from harness import Goal, compare, interleave, seconds
from servers import product, single_items

from flue.store.v1 import store_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale
    from servers import Product

    from flue.store.v1.store_pb2_grpc import StoreStub

_COLUMNS = (
    "id, session_id, role, content, provider, tool_calls, tool_call_id, name, created_at, images"
)
_REPEATS = 5


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
        file = Path(data) / "store.db"
        with single_items(file) as single:
            batched, one = interleave(
                scale.rounds,
                ("in batches", "msg/s", lambda: count / seconds(lambda: _list(served.store))),
                ("one per response", "msg/s", lambda: count / seconds(lambda: _list(single))),
            )
        yield compare(Goal("P14", f"ListMessages of {count}", "at least", 20.0), batched, one)
        ours, sql = interleave(
            scale.rounds,
            ("server", "ms CPU", lambda: _server_cpu(served)),
            ("SQL alone", "ms CPU", lambda: _sql(file)),
        )
        yield compare(Goal("P14", "CPU of the same list", "at most", 3.0), ours, sql)


def _list(store: StoreStub) -> None:
    for _ in store.ListMessages(store_pb2.ListMessagesRequest(session_id="s")):
        pass


def _server_cpu(served: Product) -> float:
    before = served.cpu_seconds()
    for _ in range(_REPEATS):
        _list(served.store)
    return (served.cpu_seconds() - before) * 1000 / _REPEATS


def _sql(file: Path) -> float:
    """Read the rows of the session, and nothing else."""
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    query = f"SELECT {_COLUMNS} FROM messages WHERE session_id = 's' ORDER BY id"
    start = time.process_time()
    for _ in range(_REPEATS):
        connection.execute(query).fetchall()
    taken = time.process_time() - start
    connection.close()
    return taken * 1000 / _REPEATS
