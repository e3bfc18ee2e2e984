"""Asking a server of this machine for its health, by the settings that it runs with."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from flue_grpc.errors import ConfigError
from flue_grpc.listeners import UnixAddress, parse_address

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flue_grpc.listeners import Address
    from flue_grpc.settings import Settings

UNKNOWN: Final = "SERVICE_UNKNOWN"


def nearest_address(settings: Settings) -> Address:
    """Choose the address to ask at: a Unix socket, which wants no certificate, if there is one."""
    addresses = [parse_address(text) for text in settings.listen]
    sockets = [address for address in addresses if isinstance(address, UnixAddress)]
    return (sockets or addresses)[0]


@contextmanager
def probing(address: Address, settings: Settings) -> Iterator[grpc.Channel]:
    """Connect to a server of ours, trusting the very certificate that the settings name.

    Raises ConfigError where it demands a client certificate, which we have not.
    """
    if isinstance(address, UnixAddress) or settings.tls_cert is None or settings.tls_key is None:
        with grpc.insecure_channel(address.target) as channel:
            yield channel
        return
    if settings.tls_client_ca is not None:
        raise ConfigError(
            f"{address} demands a client certificate; use --server {address} with --ca, --cert "
            "and --key, or listen on a Unix socket too, to be asked there"
        )
    with _secure_channel(address, settings.tls_cert, settings.tls_key) as channel:
        yield channel


def status_of(channel: grpc.Channel, service: str, seconds: float) -> str | None:
    """Return the status of a service by its name, UNKNOWN, or None when nobody answers."""
    stub: Any = health_pb2_grpc.HealthStub(channel)
    try:
        answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=seconds)
    except grpc.RpcError as error:
        return UNKNOWN if error.code() is grpc.StatusCode.NOT_FOUND else None
    name: str = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
    return name


def _secure_channel(address: Address, certificate: Path, key: Path) -> grpc.Channel:
    from flue_grpc.security.certificate_facts import read_facts  # noqa: PLC0415  (rarely needed)

    names = read_facts(certificate, key).names
    options = [("grpc.ssl_target_name_override", names[0])] if names else []
    credentials = grpc.ssl_channel_credentials(certificate.read_bytes())
    return grpc.secure_channel(address.target, credentials, options)
