"""An HTTP server for a few short requests, whose clients cannot hold it up."""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time
from contextlib import suppress
from http.server import HTTPServer
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any, Final

from flue_grpc.limits import METRICS_CONNECTIONS, METRICS_REQUEST_SECONDS

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler

_LOGGER: Final = logging.getLogger("flue_grpc.observability")


class BoundedHTTPServer(ThreadingMixIn, HTTPServer):
    """Serves each connection on a thread of its own, from its first byte to its last in bounds.

    A connection is cut METRICS_REQUEST_SECONDS after it was taken, however it spends
    them, and the oldest of METRICS_CONNECTIONS when there is one more.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        """Listen at once; raises OSError."""
        # In the order of their beginning.
        self._begun: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as typeshed has it
        """Serve a connection beside the others."""
        with self._lock:
            self._begun[request] = time.monotonic()
            if len(self._begun) > METRICS_CONNECTIONS:
                _cut(next(iter(self._begun)))
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401  # as typeshed has it
        """Close a connection that was served."""
        with self._lock:
            self._begun.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Cut what takes too long; called between connections and at each poll."""
        latest = time.monotonic() - METRICS_REQUEST_SECONDS
        with self._lock:
            for request in [each for each, begun in self._begun.items() if begun <= latest]:
                _cut(request)

    def server_close(self) -> None:
        """Stop listening and cut every connection; waits for nobody."""
        super().server_close()
        with self._lock:
            for request in self._begun:
                _cut(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as typeshed has it
        """Name an error that is ours; a client that went away, or was cut, is none."""
        del request, client_address
        kind = sys.exc_info()[0]
        if kind is not None and not issubclass(kind, OSError):
            _LOGGER.error("unexpected %s in the metrics endpoint", kind.__name__)


def _cut(connection: socket.socket) -> None:
    """End what its thread waits for; the thread closes it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
