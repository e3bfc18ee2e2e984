"""A server of our own: options, addresses, start and shutdown."""

from __future__ import annotations

import logging
import os
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import grpc

from flue_grpc import limits
from flue_grpc.listeners import (
    TcpAddress,
    UnixAddress,
    bind,
    lock_socket,
    parse_address,
    removal,
)
from flue_grpc.private_files import announce
from flue_grpc.rpc.interceptors.authentication import Authentication
from flue_grpc.security.gate import Gate, TcpSettings, parse_client_roles
from flue_grpc.services import Services, index_lock, store_lock
from flue_grpc.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flue_grpc.config import Configuration
    from flue_grpc.listeners import Address
    from flue_grpc.settings import Settings

_LOGGER: Final = logging.getLogger("flue_grpc.security")
_FLUSH_SECONDS: Final = 1.0  # for answers that are made and on their way


class Server:
    """Both services on their addresses, from ``start`` to ``stop``."""

    def __init__(self, configuration: Configuration) -> None:
        """Take the locks, open the services and listen; nothing is served yet.

        Raises a StartupError that says what to do; nothing is left behind then.
        """
        settings = configuration.settings
        addresses = tuple(parse_address(text) for text in settings.listen)
        with ExitStack() as opened:
            for address in addresses:
                if isinstance(address, UnixAddress):
                    opened.enter_context(lock_socket(address))
            gate = _gate(addresses, settings)
            self.telemetry = Telemetry(settings)
            opened.callback(self.telemetry.close)
            admitting = (Authentication(gate.trust),) if gate else ()
            self.services = Services(configuration, self.telemetry.observing, admitting)
            opened.callback(self.services.close)
            self._server = grpc.server(self.services.runtime.workers, options=server_options())
            self.services.add_to(self._server)
            self.addresses = tuple(
                _bind(self._server, address, gate, opened) for address in addresses
            )
            self._opened = opened.pop_all()
        self.telemetry.watch(self.services)
        self._drain_seconds = settings.drain_seconds
        self._locks = (store_lock(configuration), index_lock(configuration, os.environ))

    def start(self) -> None:
        """Serve."""
        self._server.start()
        self.services.start()

    def announce(self) -> None:
        """Write into the locks of the Store and of the index where this server listens."""
        addresses = tuple(map(str, self.addresses))
        for lock in self._locks:
            announce(lock, addresses)

    def stop(self) -> None:
        """Drain within the grace period, then close everything, the database last."""
        until = time.monotonic() + self._drain_seconds
        if self.services.drain(self._drain_seconds):
            left = max(_FLUSH_SECONDS, until - time.monotonic())
            self._server.stop(left).wait(left + _FLUSH_SECONDS)
        else:
            self._server.stop(0).wait(_FLUSH_SECONDS)
        self._opened.close()


def _gate(addresses: Sequence[Address], settings: Settings) -> Gate | None:
    """Guard the TCP addresses; None when there are none. Raises ConfigError."""
    hosts = [address.host for address in addresses if isinstance(address, TcpAddress)]
    return Gate(hosts, tcp_settings(settings), _LOGGER.warning) if hosts else None


def tcp_settings(settings: Settings) -> TcpSettings:
    """Say what guards TCP addresses; raises ConfigError for a role that there is not."""
    return TcpSettings(
        token_file=settings.token_path,
        certificate=settings.tls_cert,
        key=settings.tls_key,
        client_ca=settings.tls_client_ca,
        client_roles=parse_client_roles(settings.tls_clients),
        insecure_plaintext=settings.insecure_plaintext_tcp,
    )


def _bind(server: grpc.Server, address: Address, gate: Gate | None, opened: ExitStack) -> Address:
    credentials = gate.credentials() if gate and isinstance(address, TcpAddress) else None
    bound = bind(server, address, credentials)
    if isinstance(bound, UnixAddress):
        opened.callback(removal(bound))
    return bound


def server_options() -> tuple[tuple[str, int], ...]:
    """Options of the gRPC server; the reason of each number is in the limits."""
    return (
        ("grpc.max_receive_message_length", limits.MAX_RECEIVE_BYTES),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_concurrent_streams", limits.MAX_CONCURRENT_STREAMS),
        # Off, or a second server would share the port in silence.
        ("grpc.so_reuseport", 0),
        ("grpc.keepalive_time_ms", limits.KEEPALIVE_SECONDS * 1000),
        ("grpc.keepalive_timeout_ms", limits.KEEPALIVE_TIMEOUT_SECONDS * 1000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.server_handshake_timeout_ms", round(limits.HANDSHAKE_SECONDS * 1000)),
        (
            "grpc.http2.min_recv_ping_interval_without_data_ms",
            limits.MIN_CLIENT_PING_SECONDS * 1000,
        ),
    )
