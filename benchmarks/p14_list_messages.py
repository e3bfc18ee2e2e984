"""P14: ListMessages of a long session, against one item per response and the SQL alone."""

from __future__ import annotations

import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, cast

import apsw
import stores
from harness import Goal, compare, interleave, seconds
from servers import product, single_items

from flue.store.v1 import store_pb2
from flue_grpc.rpc.interceptors.drain import Drain
from flue_grpc.rpc.store_service import StoreService
from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft

if TYPE_CHECKING:
    from collections.abc import Iterator

    import grpc
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
                ("bare, one by one", "msg/s", lambda: count / seconds(lambda: _list(single))),
            )
        yield compare(Goal("P14", f"the same against a bare server of {count}"), batched, one)
        ours, sql = interleave(
            scale.rounds,
            ("server, sending too", "ms CPU", lambda: _server_cpu(served)),
            ("SQL alone", "ms CPU", lambda: _sql(file)),
        )
        yield compare(Goal("P14", "the server's CPU of the same list"), ours, sql)
    yield from _against_batches_of_one(scale, home, count)
    with tempfile.TemporaryDirectory(dir=scale.work) as directory:
        file = Path(directory) / "store.db"
        with closing(Store.open(file)) as store:
            dice = stores.dice()
            store.create_session("s", "")
            for _ in range(0, count, 1000):
                drafts = [Draft("user", stores.text(dice, 500)) for _ in range(1000)]
                store.append_messages("s", drafts)
            ours, sql = interleave(
                scale.rounds * 3,
                ("to bytes", "ms CPU", lambda: _to_bytes(store)),
                ("SQL alone", "ms CPU", lambda: _sql(file)),
            )
    yield compare(Goal("P14", "rows to the bytes of responses", "at most", 3.0), ours, sql)


def _against_batches_of_one(scale: Scale, home: Path, count: int) -> Iterator[Figure]:
    """Yield the ratio by the clock, and by CPU, which other work on the machine changes less."""
    script = str(Path(__file__).with_name("batches_of_one.py"))
    with product(home) as served, product(home, program=(script,)) as single:
        for one in (served, single):
            stores.fill(one, "s", count, 500)
        ours, ones, ours_cpu, ones_cpu = interleave(
            scale.rounds,
            ("in batches", "msg/s", lambda: count / seconds(lambda: _list(served.store))),
            ("one per response", "msg/s", lambda: count / seconds(lambda: _list(single.store))),
            ("in batches", "msg/s of CPU", lambda: count / _both_cpu(served)),
            ("one per response", "msg/s of CPU", lambda: count / _both_cpu(single)),
        )
    yield compare(Goal("P14", f"ListMessages of {count}, wall"), ours, ones)
    yield compare(Goal("P14", f"ListMessages of {count}", "at least", 20.0), ours_cpu, ones_cpu)


def _both_cpu(served: Product) -> float:
    """Return the CPU seconds of one list at client and server; they share the cores."""
    before = served.cpu_seconds() + time.process_time()
    _list(served.store)
    return served.cpu_seconds() + time.process_time() - before


def _list(store: StoreStub) -> None:
    for _ in store.ListMessages(store_pb2.ListMessagesRequest(session_id="s")):
        pass


def _server_cpu(served: Product) -> float:
    before = served.cpu_seconds()
    for _ in range(_REPEATS):
        _list(served.store)
    return (served.cpu_seconds() - before) * 1000 / _REPEATS


def _to_bytes(store: Store) -> float:
    """Answer the list without a network: rows to values, to protobuf, to bytes."""
    service, request = StoreService(store, Drain()), store_pb2.ListMessagesRequest(session_id="s")
    context = cast("grpc.ServicerContext", _Context())
    start = time.process_time()
    for _ in range(_REPEATS):
        for response in service.ListMessages(request, context):
            response.SerializeToString()
    return (time.process_time() - start) * 1000 / _REPEATS


class _Context:
    """What the handler asks of a call under way."""

    def is_active(self) -> bool:
        """Say that the client waits."""
        return True


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
