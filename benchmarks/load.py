"""Load from outside: ``python benchmarks/load.py ADDRESS KIND COUNT SESSION``.

``lists`` runs COUNT clients that list the messages of SESSION again and again,
``follows`` keeps COUNT streams open that follow it. Prints ``ready`` once all of
them have their first response, and ends when its standard input closes.
"""

from __future__ import annotations

import asyncio
import sys
import threading

import grpc

from flue.store.v1 import store_pb2, store_pb2_grpc

_OPTIONS = [("grpc.max_receive_message_length", 36 << 20)]


def _lists(address: str, count: int, session: str) -> None:
    request = store_pb2.ListMessagesRequest(session_id=session)
    begun = threading.Barrier(count + 1)

    def client() -> None:
        with grpc.insecure_channel(
            address, [*_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
        ) as channel:
            stub = store_pb2_grpc.StoreStub(channel)
            is_first = True
            while True:
                for _ in stub.ListMessages(request):
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
    address, kind, count, session = sys.argv[1:]
    if kind == "lists":
        _lists(address, int(count), session)
    else:
        asyncio.run(_follows(address, int(count), session))


if __name__ == "__main__":
    main()
