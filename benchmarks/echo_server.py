"""A gRPC server that answers as many bytes as asked for: the floor of any unary call.

``python benchmarks/echo_server.py unix:PATH``; it prints ``ready`` and ends when its
standard input closes.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import grpc


def _answer(request: bytes, _context: grpc.ServicerContext) -> bytes:
    return bytes(int(request or b"0"))


def main() -> None:
    """Serve until nobody holds the other end of standard input."""
    server = grpc.server(ThreadPoolExecutor(max_workers=64))
    handler = grpc.unary_unary_rpc_method_handler(_answer)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("bench.Echo", {"Call": handler}),)
    )
    server.add_insecure_port(sys.argv[1])
    server.start()
    print("ready", flush=True)
    sys.stdin.read()
    server.stop(None).wait()


if __name__ == "__main__":
    main()
