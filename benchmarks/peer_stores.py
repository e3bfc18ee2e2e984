"""hermes-agent and openai-agents: appends and searches of their session stores, in process.

The product is asked over gRPC, with every append synced to the disk; the peers are
called inside one process, as they are used.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import stores
from harness import Goal, Series, compare
from latency import p50, sample
from processes import Command
from servers import product

from flue.store.v1 import store_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale

_PEERS = {"hermes-agent": ("append", "search"), "openai-agents": ("append",)}


def measure(scale: Scale, peers: Path) -> Iterator[Figure]:
    """Yield the medians of each operation that a peer has."""
    messages = scale.pick(20_000, 2_000)
    ours: dict[str, list[float]] = {"append": [], "search": []}
    theirs: dict[tuple[str, str], list[float]] = {}
    modes: dict[str, str] = {}
    for _ in range(min(scale.rounds, 3)):
        for what, figure in _product(scale, messages).items():
            ours[what].append(figure)
        for peer, operations in _PEERS.items():
            measured = _peer(scale, peers, peer, messages)
            modes[peer] = f"synchronous={measured['synchronous']}"
            for what in operations:
                theirs.setdefault((peer, what), []).append(float(measured[what]))
    for (peer, what), samples in theirs.items():
        goal = Goal(peer, f"{what}, p50, {messages} messages, {modes[peer]}")
        yield compare(
            goal,
            Series("over gRPC, synced", "ms", tuple(ours[what])),
            Series(peer, "ms", tuple(samples)),
        )


def _product(scale: Scale, messages: int) -> dict[str, float]:
    home = scale.work / "home-none"
    home.mkdir(exist_ok=True)
    with product(home) as served:
        stores.fill(served, "s", messages, 500)
        text, words = stores.text, iter(stores.SEARCHED * 100)
        dice = stores.dice()

        def append() -> None:
            message = store_pb2.Message(role="user", content=text(dice, 500))
            served.store.AppendMessage(
                store_pb2.AppendMessageRequest(session_id="s", message=message)
            )

        def search() -> None:
            request = store_pb2.SearchMessagesRequest(query=next(words), limit=20)
            for _ in served.store.SearchMessages(request):
                pass

        return {"append": p50(sample(append, count=200)), "search": p50(sample(search, count=50))}


def _peer(scale: Scale, peers: Path, peer: str, messages: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=scale.work) as directory:
        script = Path(__file__).with_name(f"peer_{peer.partition('-')[0]}_store.py")
        path = f"{directory}/store.db"
        run = Command([str(peers / peer / "bin/python"), str(script), path, str(messages)])
        measured: dict[str, float] = json.loads(run.run().output.splitlines()[-1])
        return measured
