"""P13: appends of 32 clients, against their echo rate; messages per commit; groups in process."""

from __future__ import annotations

import tempfile
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness import Goal, Series, absolute, compare, interleave
from servers import echo, product

from flue.store.v1 import store_pb2
from flue_grpc.cancel import NEVER
from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness import Figure, Scale

    from flue_grpc.cancel import Cancel

_CLIENTS = 32
_TEXT = "what the agent said about the timeout of the gateway " * 9


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield rates over the wire, messages per commit, and the gain of a group in process."""
    home = scale.work / "home-none"
    home.mkdir(exist_ok=True)
    with product(home) as served, echo() as answer:
        served.store.CreateSession(store_pb2.CreateSessionRequest(id="s"))
        request = store_pb2.AppendMessageRequest(
            session_id="s", message=store_pb2.Message(role="user", content=_TEXT)
        )
        ours, floor = interleave(
            scale.rounds,
            ("append", "calls/s", lambda: _rate(lambda: served.store.AppendMessage(request))),
            ("echo", "calls/s", lambda: _rate(lambda: answer(600))),
        )
    yield compare(Goal("P13", "durable appends of 32 clients", "at least", 0.4), ours, floor)
    yield from _in_process(scale)


def _rate(call: Callable[[], object], seconds: float = 1.5) -> float:
    counts = [0] * _CLIENTS
    until = time.perf_counter() + seconds

    def client(number: int) -> None:
        while time.perf_counter() < until:
            call()
            counts[number] += 1

    threads = [threading.Thread(target=client, args=(number,)) for number in range(_CLIENTS)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - start)


def _in_process(scale: Scale) -> Iterator[Figure]:
    per_commit: list[float] = []
    count = scale.pick(1_600, 320)

    def at_will() -> float:
        with _store(scale) as store:
            before = store.commits
            rate = _append(store, count, _CLIENTS, NEVER)
            per_commit.append(count / (store.commits - before))
            return rate

    interleave(scale.rounds, ("32 writers", "msg/s", at_will))
    goal = Goal("P13", "messages per commit, 32 writers in process", "at least", 4.0)
    yield absolute(goal, Series("Store", "messages", tuple(per_commit)))
    eight, batches, one = interleave(
        scale.rounds,
        ("8 per commit", "msg/s", lambda: _in_groups(scale, count, 8)),
        ("batches of 8", "msg/s", lambda: _in_batches(scale, count, 8)),
        ("1 per commit", "msg/s", lambda: _in_groups(scale, count, 1)),
    )
    goal = Goal("P13", "8 appends per commit, in process", "at least", 2.5)
    yield compare(goal, eight, one)
    yield compare(Goal("P13", "AppendMessages of 8, in process"), batches, one)


@contextmanager
def _store(scale: Scale) -> Iterator[Store]:
    with (
        tempfile.TemporaryDirectory(dir=scale.work) as directory,
        closing(Store.open(Path(directory) / "store.db")) as store,
    ):
        store.create_session("s", "")
        yield store


def _append(store: Store, count: int, writers: int, cancel: Cancel) -> float:
    """Return the rate at which ``writers`` threads append ``count`` messages, one by one."""

    def client() -> None:
        for _ in range(count // writers):
            store.append_message("s", Draft("user", _TEXT), cancel=cancel)

    threads = [threading.Thread(target=client) for _ in range(writers)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count / (time.perf_counter() - start)


class _Together:
    """Lets the writer begin a group when all of it wait; it asks of each append it takes."""

    def __init__(self, store: Store, size: int) -> None:
        self._store = store
        self._size = size
        self._taken = 0

    def is_cancelled(self) -> bool:
        """Say no, for the first of a group once the others wait."""
        if self._taken % self._size == 0:
            while self._store.waiting < self._size - 1:
                time.sleep(0)
        self._taken += 1
        return False

    def check(self) -> None:
        """Let it go on."""


def _in_groups(scale: Scale, count: int, size: int) -> float:
    """Return the rate of single appends, each an operation of its own, ``size`` in a commit."""
    with _store(scale) as store:
        before = store.commits
        rate = _append(store, count, size, _Together(store, size))
        if store.commits - before != count // size:
            raise RuntimeError(f"{count} appends took {store.commits - before} commits")
        return rate


def _in_batches(scale: Scale, count: int, size: int) -> float:
    """Return the rate of AppendMessages, one operation each."""
    drafts = [Draft("user", _TEXT)] * size
    with _store(scale) as store:
        start = time.perf_counter()
        for _ in range(count // size):
            store.append_messages("s", drafts)
        return count / (time.perf_counter() - start)
