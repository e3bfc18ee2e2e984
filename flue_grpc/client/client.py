"""The client: one connection, both services."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final

from grpc_health.v1 import health_pb2

from flue_grpc.client.agentindex import AgentIndexClient
from flue_grpc.client.calls import Caller
from flue_grpc.client.channel import open_channel
from flue_grpc.client.retry import RetryPolicy, in_silence
from flue_grpc.client.store import StoreClient
from flue_grpc.client.target import Target, default_socket, socket_target
from flue_grpc.limits import UNARY_DEADLINE_SECONDS
from flue_grpc.private_files import refuse_strange_socket

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from flue_grpc.client.retry import OnBreak

_DEFAULT_POLICY = RetryPolicy()
_CLOSE_SECONDS: Final = 2.0  # much more than calls take that are told to end


class Client:
    """A connection to one server, safe to use from many threads.

    ``store`` and ``agentindex`` are its two services.
    """

    def __init__(
        self,
        target: Target,
        *,
        retry: RetryPolicy = _DEFAULT_POLICY,
        timeout: float = UNARY_DEADLINE_SECONDS,
        on_break: OnBreak = in_silence,
    ) -> None:
        """Prepare the connection, which is made by the first call.

        ``timeout`` is the deadline in seconds of unary calls that bring none.
        ``on_break`` is called with the CallError when a stream breaks that is tried
        again, and with None when it goes on, by the thread that iterates.
        Raises ConfigError for a target that can never work.
        """
        self._channel = open_channel(target)
        self._caller = Caller(target, retry, timeout, on_break)
        self._check = self._channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        self.store = StoreClient(self._channel, self._caller)
        self.agentindex = AgentIndexClient(self._channel, self._caller)

    def is_serving(self, service: str = "", *, timeout: float | None = None) -> bool:
        """Ask whether a service, by its health name, takes calls; "" is the server.

        Raises CallError, UNAVAILABLE when there is no server.
        """
        request = health_pb2.HealthCheckRequest(service=service)
        answer = self._caller.read(self._check, request, timeout)
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    def close(self) -> None:
        """End every call and the connection."""
        self._caller.close()
        # gRPC waits for every call, and one that Ctrl-C interrupted while it began never ends.
        closing = threading.Thread(target=self._channel.close, name="flue-close", daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def connect(address: str = "", *, token: str = "") -> Client:
    """Open a client of the server at ``address``, ``unix:/path`` or ``host:port``.

    Empty: this user's own server, on its default socket. For TLS, mutual TLS and
    other settings make a Target and a Client. Raises ConfigError for an address that
    can never work, and for a default socket that another user made or can make.
    """
    if not address:
        path = default_socket(os.environ)
        refuse_strange_socket(path)
        return Client(socket_target(path))
    return Client(Target(address=address, token=token))
