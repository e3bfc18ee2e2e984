"""P13: appends of 32 clients, against their echo rate; messages per commit; groups in process."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from harness import Goal, Series, absolute, compare, interleave
from servers import echo, product

from flue.store.v1 import store_pb2
from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness import Figure, Scale

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

    def threads_of(clients: int) -> float:
        with tempfile.TemporaryDirectory(dir=scale.work) as directory:
            store = Store.open(Path(directory) / "store.db")
            store.create_session("s", "")
            each = scale.pick(1_600, 320) // clients
            threads = [
                threading.Thread(
                    target=lambda: [
                        store.append_message("s", Draft("user", _TEXT)) for _ in range(each)
                    ]
                )
                for _ in range(clients)
            ]
            before, start = store.commits, time.perf_counter()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            rate = each * clients / (time.perf_counter() - start)
            if clients == _CLIENTS:
                per_commit.append(each * clients / (store.commits - before))
            store.close()
            return rate

    def batches_of(size: int) -> float:
        with tempfile.TemporaryDirectory(dir=scale.work) as directory:
            store = Store.open(Path(directory) / "store.db")
            store.create_session("s", "")
            drafts = [Draft("user", _TEXT)] * size
            count = scale.pick(1_600, 320) // size
            start = time.perf_counter()
            for _ in range(count):
                store.append_messages("s", drafts)
            rate = count * size / (time.perf_counter() - start)
            store.close()
            return rate

    interleave(scale.rounds, ("32 writers", "msg/s", lambda: threads_of(_CLIENTS)))
    goal = Goal("P13", "messages per commit, 32 writers in process", "at least", 4.0)
    yield absolute(goal, Series("Store", "messages", tuple(per_commit)))
    eight, one = interleave(
        scale.rounds,
        ("8 per commit", "msg/s", lambda: batches_of(8)),
        ("1 per commit", "msg/s", lambda: batches_of(1)),
    )
    yield compare(Goal("P13", "8 messages per commit, in process", "at least", 2.5), eight, one)
