"""P17: from an append to the event at a client that follows, in the Store and in a file."""

from __future__ import annotations

import queue
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
from harness import Goal, absolute
from homes import home, transcript_of
from latency import series
from servers import load, product

from flue.agentindex.v1 import agent_index_pb2
from flue.store.v1 import store_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness import Figure, Scale

_FOLLOWERS = 200
_LINE = '{"type":"user","message":{"role":"user","content":"go on"}}\n'


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield the medians."""
    count = scale.pick(100, 20)
    with tempfile.TemporaryDirectory(dir=scale.work) as temporary:
        path = Path(temporary)
        session = transcript_of(home(scale.work, 60, 100), path, 1, 0)
        file = next(path.rglob(f"{session}.jsonl"))
        with product(path, "--no-ranked-index") as served:
            served.swept()
            served.store.CreateSession(store_pb2.CreateSessionRequest(id="s"))
            message = store_pb2.Message(role="user", content="go on")
            append = store_pb2.AppendMessageRequest(session_id="s", message=message)
            follow = store_pb2.ListMessagesRequest(session_id="s", follow=True)
            with load(served, "follows", _FOLLOWERS - 1, "s"):
                stored = _delays(
                    served.another().store.ListMessages(follow),
                    lambda response: bool(response.messages),
                    lambda: served.store.AppendMessage(append),
                    count,
                )
            read = agent_index_pb2.ReadTranscriptRequest(tool="claude", id=session, follow=True)
            written = _delays(
                served.another().index.ReadTranscript(read),
                lambda response: bool(response.page.messages),
                lambda: _append(file),
                count,
            )
    goal = Goal("P17", f"Store to one of {_FOLLOWERS} followers, p50", "at most", 100.0)
    yield absolute(goal, series("append to event", stored))
    goal = Goal("P17", "transcript to a follower, p50", "at most", 250.0)
    yield absolute(goal, series("write to event", written))


def _append(file: Path) -> None:
    with file.open("a", encoding="utf-8") as out:
        out.write(_LINE)


def _delays(
    call: Iterator[object],
    is_event: Callable[..., bool],
    append: Callable[[], object],
    count: int,
) -> list[float]:
    """Append again and again; return the milliseconds until each event came."""
    events: queue.Queue[float] = queue.Queue()
    ready = threading.Event()

    def read() -> None:
        with suppress(grpc.RpcError):  # it ends by being cancelled
            for response in call:
                if ready.is_set() and is_event(response):
                    events.put(time.perf_counter())
                elif response.caught_up:  # type: ignore[attr-defined]  # both kinds have it
                    ready.set()

    threading.Thread(target=read, daemon=True).start()
    ready.wait(30)
    delays: list[float] = []
    for _ in range(count):
        start = time.perf_counter()
        append()
        delays.append((events.get(timeout=30) - start) * 1000)
        time.sleep(0.02)
    call.cancel()  # type: ignore[attr-defined]  # a call of grpc
    return delays
