"""TLS credentials from files that are read again when they change, without a restart.

grpcio asks for the certificates at every handshake; the answer costs three
``stat`` calls unless something changed. Files that do not fit together, as in
the middle of a rotation, leave what was in force in force.
"""

from __future__ import annotations

import ssl
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import msgspec

from flue_grpc.errors import ConfigError
from flue_grpc.limits import CERTIFICATE_FILE_BYTES
from flue_grpc.security.file_signature import FileSignature, file_signature

if TYPE_CHECKING:
    from collections.abc import Callable

Signatures = tuple[FileSignature | None, ...]


class TlsFiles(msgspec.Struct, frozen=True):
    """PEM files: the server's chain and key, and whose clients it trusts (mTLS)."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def paths(self) -> tuple[Path, ...]:
        """List the files that are in use."""
        files = (self.certificate, self.key, self.client_ca)
        return tuple(path for path in files if path is not None)


class TlsSource:
    """Hands grpcio the certificates in force; safe from any thread.

    ``on_change`` is told, in words without a path, what became of a change.
    """

    def __init__(self, files: TlsFiles, on_change: Callable[[str], None]) -> None:
        """Read the files once; raises ConfigError when they cannot be used."""
        self._files = files
        self._on_change = on_change
        self._lock = threading.Lock()
        self._signatures = _signatures(files)
        self._initial = load(files)

    def credentials(self) -> grpc.ServerCredentials:
        """Make server credentials that follow the files."""
        return grpc.dynamic_ssl_server_credentials(
            self._initial,
            self.changed,  # type: ignore[arg-type]  # grpcio documents None: no change
            require_client_authentication=self._files.client_ca is not None,
        )

    def changed(self) -> grpc.ServerCertificateConfiguration | None:
        """Read the files when they changed since the last look; None keeps what is there."""
        with self._lock:
            signatures = _signatures(self._files)
            if signatures == self._signatures:
                return None
            self._signatures = signatures
            try:
                configuration = load(self._files)
            except ConfigError:
                self._on_change("the TLS files changed and cannot be used; the old ones stay")
                return None
            self._on_change("the TLS files changed and are in use")
            return configuration


def load(files: TlsFiles) -> grpc.ServerCertificateConfiguration:
    """Read and check the files; raises ConfigError naming the one that is wrong."""
    certificate = _read(files.certificate)
    key = _read(files.key)
    client_ca = _read(files.client_ca) if files.client_ca is not None else None
    _check_pair(files)
    if client_ca is not None:
        _check_authorities(files, client_ca)
    return grpc.ssl_server_certificate_configuration([(key, certificate)], client_ca)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(CERTIFICATE_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    if len(data) > CERTIFICATE_FILE_BYTES:
        raise ConfigError(f"{path} is larger than {CERTIFICATE_FILE_BYTES} bytes")
    return data


def _check_pair(files: TlsFiles) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            files.certificate, files.key, password=_no_password
        )
    except (ssl.SSLError, OSError, ValueError) as error:
        raise ConfigError(
            f"{files.certificate} and {files.key} are not a PEM certificate and its key"
        ) from error


def _no_password() -> str:
    """Keep OpenSSL from asking on the terminal for the key's password."""
    raise ValueError("the key is encrypted")


def _check_authorities(files: TlsFiles, pem: bytes) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{files.client_ca} holds no PEM certificate") from error


def _signatures(files: TlsFiles) -> Signatures:
    return tuple(file_signature(path) for path in files.paths())
