"""How TCP addresses are guarded: which credentials each demands (contract "Transport and trust").

With TLS files: a client certificate when there is an authority for clients, else
a bearer token. Without: a token, on loopback only, unless somebody else guards
the address. The Unix socket is guarded by the file system and not by this.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from flue_grpc.errors import ConfigError
from flue_grpc.security.addresses import is_loopback
from flue_grpc.security.alternative_names import configured_name
from flue_grpc.security.authenticators import (
    CertificateAuthenticator,
    TokenAuthenticator,
    Trust,
    Trusting,
)
from flue_grpc.security.certificates import TlsFiles, TlsSource
from flue_grpc.security.roles import Role
from flue_grpc.security.tokens import TokenFile, create_token_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import grpc

    from flue_grpc.security.authenticators import Authenticator


def parse_client_roles(entries: Iterable[str]) -> Mapping[str, Role]:
    """Read ``NAME=ROLE`` entries, the name up to the last ``=``; raises ConfigError."""
    roles: dict[str, Role] = {}
    for entry in entries:
        written, _, role = entry.rpartition("=")
        if not written or role not in tuple(Role):
            raise ConfigError(f"tls_clients: {entry!r} must be NAME=full or NAME=read")
        name = configured_name(written).text
        if name in roles:
            raise ConfigError(f"tls_clients: {name!r} is there twice")
        roles[name] = Role(role)
    return roles


class TcpSettings(msgspec.Struct, frozen=True):
    """What guards TCP addresses.

    ``token_file`` is made when it is needed and missing. ``client_roles`` are the
    roles by subject alternative name, ``*`` for any, and go with ``client_ca``.
    """

    token_file: Path
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    client_roles: Mapping[str, Role] = {}
    insecure_plaintext: bool = False

    def tls_files(self) -> TlsFiles | None:
        """Return the TLS files; raises ConfigError for settings that contradict each other."""
        if (self.certificate is None) != (self.key is None):
            raise ConfigError("tls_cert and tls_key go together: set both or none")
        if bool(self.client_roles) != (self.client_ca is not None):
            raise ConfigError(
                "tls_client_ca and tls_clients go together: say whose clients have which role"
            )
        if self.certificate is None or self.key is None:
            if self.client_ca is not None:
                raise ConfigError("tls_client_ca needs tls_cert and tls_key")
            return None
        if self.insecure_plaintext:
            raise ConfigError("insecure_plaintext_tcp and tls_cert contradict each other")
        return TlsFiles(self.certificate, self.key, self.client_ca)


class Gate:
    """Says which credentials TCP addresses are served with; ``trust`` is for their calls.

    ``notify`` is told, without paths or tokens, of changed files and of faults in
    them. Raises ConfigError when files or settings cannot be used.
    """

    def __init__(
        self, hosts: Iterable[str], settings: TcpSettings, notify: Callable[[str], None]
    ) -> None:
        """Check that each of ``hosts`` may be served so, read the files, make a missing token."""
        files = settings.tls_files()
        if files is None and not settings.insecure_plaintext:
            for host in hosts:
                _refuse_exposed(host)
        self._tls = TlsSource(files, notify) if files else None
        authenticator = _authenticator(settings, notify)
        self.trust = Trust(secure=authenticator) if files else Trust(plaintext=authenticator)

    def credentials(self) -> grpc.ServerCredentials | None:
        """Make the credentials of an address; None is plaintext."""
        return self._tls.credentials() if self._tls is not None else None


def _refuse_exposed(host: str) -> None:
    if not is_loopback(host):
        raise ConfigError(
            f"{host} can be reached from other machines: set tls_cert and tls_key, "
            "or --insecure-plaintext-tcp behind a sidecar that asks for credentials"
        )


def _authenticator(settings: TcpSettings, notify: Callable[[str], None]) -> Authenticator:
    if settings.insecure_plaintext:
        return Trusting()
    if settings.client_ca is not None:
        return CertificateAuthenticator(settings.client_roles)
    create_token_file(settings.token_file)
    return TokenAuthenticator(TokenFile(settings.token_file, notify))
