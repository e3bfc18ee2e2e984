"""Where a server listens and what it wants to see before it answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from flue_grpc.errors import ConfigError
from flue_grpc.listeners import parse_address
from flue_grpc.security.addresses import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNIX = "unix:"
_TOKEN_FIELDS = 3


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """One server: ``address`` is ``unix:/path``, with the path as it is, or ``host:port``.

    ``root_certificates`` (PEM) switches TLS on with that root instead of the
    system's, ``certificate`` and ``private_key`` (PEM) switch on mutual TLS.
    ``server_name`` is the name that the server's certificate must carry where
    it is not the host of ``address``.
    """

    address: str
    token: str = ""
    tls: bool = False
    root_certificates: bytes | None = None
    certificate: bytes | None = None
    private_key: bytes | None = None
    server_name: str = ""

    @property
    def is_unix(self) -> bool:
        """The server listens on a Unix socket."""
        return self.address.startswith(_UNIX)

    @property
    def uri(self) -> str:
        """The address as gRPC takes it; raises ConfigError as ``check`` does."""
        return parse_address(self.address).target if self.is_unix else self.address

    @property
    def is_secure(self) -> bool:
        """The connection is encrypted."""
        return self.tls or self.root_certificates is not None or self.certificate is not None

    def check(self) -> None:
        """Raise ConfigError for what can never work or would give a token away."""
        if (self.certificate is None) != (self.private_key is None):
            raise ConfigError("a client's certificate and its private key go together")
        if not (self.token.isascii() and self.token.isprintable()):
            raise ConfigError("a token is printable ASCII on one line")
        if self.is_unix:
            _check_socket(self.address)
            return
        host, separator, port = self.address.rpartition(":")
        if not (separator and host and port.isdecimal()):
            raise ConfigError(f"{self.address!r} is neither unix:/path nor host:port")
        if self.token and not self.is_secure and not is_loopback(host):
            raise ConfigError(f"a token is sent to {host} only over TLS")


def default_socket(environment: Mapping[str, str]) -> Path:
    """Name the socket of this user's own server (contract "Transport and trust")."""
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    if runtime:
        return Path(runtime) / "flue-grpc" / "flue.sock"
    data = environment.get("XDG_DATA_HOME", "") or str(Path.home() / ".local" / "share")
    return Path(data) / "flue-grpc" / "flue.sock"


def socket_target(path: Path) -> Target:
    """Name the server that listens on the Unix socket ``path``."""
    return Target(address=f"{_UNIX}{path.absolute()}")


def read_token(path: Path) -> str:
    """Take the first token of ``path``: a server's token file, or a file of just a token.

    Raises ConfigError when there is none or the file cannot be read.
    """
    try:
        text = path.read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the token file {path}: {error}") from error
    for line in text.splitlines():
        fields = line.split()
        if fields and not fields[0].startswith("#"):
            return fields[1] if len(fields) == _TOKEN_FIELDS else fields[0]
    raise ConfigError(f"there is no token in {path}")


def _check_socket(address: str) -> None:
    path = address.removeprefix(_UNIX)
    if not path.startswith("/"):
        raise ConfigError(f"the socket path {path!r} is not absolute")
    parse_address(address)
