"""What a certificate says of itself: until when it holds, and for which names.

The standard library reads a certificate only as the peer of a handshake, so one
is made in memory, with the certificate as its own anchor of trust.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final, cast

import msgspec

from flue_grpc.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


_TURNS: Final = 8  # a handshake takes three


class CertificateFacts(msgspec.Struct, frozen=True):
    """The end of validity in seconds since 1970-01-01 UTC, and the names it is for."""

    not_after: float
    names: tuple[str, ...]


def read_facts(certificate: Path, key: Path) -> CertificateFacts:
    """Read a PEM certificate; raises ConfigError when it cannot be, expired ones included."""
    try:
        peer = _handshake(certificate, key)
    except ssl.SSLCertVerificationError as error:
        raise ConfigError(f"{certificate}: {error.verify_message}") from error
    except (ssl.SSLError, OSError, ValueError) as error:
        raise ConfigError(
            f"{certificate} and {key} are not a PEM certificate and its key"
        ) from error
    names = cast("tuple[tuple[str, str], ...]", peer.get("subjectAltName", ()))
    return CertificateFacts(
        ssl.cert_time_to_seconds(str(peer["notAfter"])), tuple(value for _, value in names)
    )


def _handshake(certificate: Path, key: Path) -> dict[str, object]:
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(certificate, key)
    client_side = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_side.check_hostname = False
    client_side.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client_side.load_verify_locations(certificate)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_side.wrap_bio(to_server, to_client, server_side=True)
    client = client_side.wrap_bio(to_client, to_server)
    # Each in turn: one wants what the other has not said yet.
    for _ in range(_TURNS):
        finished = [_has_finished(side) for side in (client, server)]
        if all(finished):
            break
    return cast("dict[str, object]", client.getpeercert() or {})


def _has_finished(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
