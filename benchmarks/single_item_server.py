"""A gRPC server that streams the messages of a Store's file, one in each response.

``python benchmarks/single_item_server.py unix:PATH FILE``; it prints ``ready`` and
ends when its standard input closes.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import apsw
import grpc

from flue.store.v1 import store_pb2, store_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import Iterator


class Single(store_pb2_grpc.StoreServicer):
    """Answers ListMessages and nothing else."""

    def ListMessages(  # noqa: N802 - the name of the RPC
        self, request: store_pb2.ListMessagesRequest, context: grpc.ServicerContext
    ) -> Iterator[store_pb2.ListMessagesResponse]:
        """Stream the session in its order."""
        del context
        db = apsw.Connection(sys.argv[2], flags=apsw.SQLITE_OPEN_READONLY)
        query = "SELECT id, session_id, role, content, created_at FROM messages WHERE session_id = ? ORDER BY id"
        for number, session, role, content, created_at in db.execute(query, (request.session_id,)):
            response = store_pb2.ListMessagesResponse()
            message = response.messages.add(
                id=number, session_id=session, role=role, content=content
            )
            message.created_at.FromMicroseconds(created_at)
            yield response


def main() -> None:
    """Serve until nobody holds the other end of standard input."""
    server = grpc.server(ThreadPoolExecutor(max_workers=8))
    store_pb2_grpc.add_StoreServicer_to_server(Single(), server)
    server.add_insecure_port(sys.argv[1])
    server.start()
    print("ready", flush=True)
    sys.stdin.read()
    server.stop(None).wait()


if __name__ == "__main__":
    main()
