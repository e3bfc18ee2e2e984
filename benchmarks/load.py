"""Load from outside: ``python benchmarks/load.py ADDRESS KIND COUNT SUBJECT``.

``lists`` runs COUNT clients that list the messages of session SUBJECT again and
again, ``searches`` as many that look for the literal SUBJECT in every transcript;
``follows`` keeps COUNT streams open that follow the session. Prints ``ready`` once
all of them have their first response, and ends when its standard input closes.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import TYPE_CHECKING

import grpc

from flue.agentindex.v1 import agent_index_pb2, agent_index_pb2_grpc
from flue.store.v1 import store_pb2, store_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_OPTIONS = [("grpc.max_receive_message_length", 36 << 20)]


def _list(channel: grpc.Channel, session: str) -> Iterable[object]:
    request = store_pb2.ListMessagesRequest(session_id=session)
    return store_pb2_grpc.StoreStub(channel).ListMessages(request)


def _search(channel: grpc.Channel, query: str) -> Iterable[object]:
    request = agent_index_pb2.SearchRequest(query=query, max_bytes=1 << 40)
    return agent_index_pb2_grpc.AgentIndexStub(channel).Search(request)


def _repeat(
    call: Callable[[grpc.Channel, str], Iterable[object]], address: str, count: int, subject: str
) -> None:
    begun = threading.Barrier(count + 1)

    def client() -> None:
        with grpc.insecure_channel(
            address, [*_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
        ) as channel:
            is_first = True
            while True:
                for _ in call(channel, subject):
                    pass
                if is_first:
                    begun.wait()
                    is_first = False

    for _ in range(count):
        threading.Thread(target=client, daemon=True).start()
    begun.wait()
    print("ready", flush=True)
    sys.stdin.read()


async def _follows(address: str, count: int, session: str) -> None:
    request = store_pb2.ListMessagesRequest(session_id=session, follow=True)
    async with grpc.aio.insecure_channel(address, _OPTIONS) as channel:
        stub = store_pb2_grpc.StoreStub(channel)
        calls = [stub.ListMessages(request) for _ in range(count)]
        for call in calls:
            while not (await call.read()).caught_up:
                pass
        print("ready", flush=True)
        rest = [asyncio.create_task(_drain(call)) for call in calls]
        await asyncio.to_thread(sys.stdin.read)
        for task in rest:
            task.cancel()


async def _drain(call: grpc.aio.UnaryStreamCall) -> None:
    async for _ in call:
        pass


def main() -> None:
    """Make the load that the command line asks for."""
    address, kind, count, subject = sys.argv[1:]
    if kind == "follows":
        asyncio.run(_follows(address, int(count), subject))
    else:
        call = {"lists": _list, "searches": _search}[kind]
        _repeat(call, address, int(count), subject)


if __name__ == "__main__":
    main()
