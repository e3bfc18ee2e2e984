"""Command lines to paste: each lists the sessions of a server, with grpcurl and with buf."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from flue_grpc.listeners import UnixAddress

if TYPE_CHECKING:
    from pathlib import Path

    from flue_grpc.listeners import Address, TcpAddress
    from flue_grpc.settings import Settings

_METHOD: Final = "flue.agentindex.v1.AgentIndex/Snapshot"
_BUF: Final = "buf curl --protocol grpc"
_EVERY_HOST: Final = ("0.0.0.0", "::")  # noqa: S104  (compared, not bound)


def lines_to_paste(address: Address, settings: Settings) -> tuple[str, str]:
    """Write the two lines for an address of a server with these settings."""
    if isinstance(address, UnixAddress):
        path = shlex.quote(str(address.path))
        return (
            f"grpcurl -plaintext -unix {path} {_METHOD}",
            f"{_BUF} --http2-prior-knowledge --unix-socket {path} http://localhost/{_METHOD}",
        )
    if settings.tls_cert is not None and settings.tls_key is not None:
        return _secure_lines(address, settings, settings.tls_cert, settings.tls_key)
    header, reflection = ("", "")
    if not settings.insecure_plaintext_tcp:
        header, reflection = _token(settings), "--reflect-header '*' "
    return (
        f"grpcurl -plaintext {header}{address} {_METHOD}",
        f"{_BUF} --http2-prior-knowledge {reflection}{header}http://{address}/{_METHOD}",
    )


def _secure_lines(
    address: TcpAddress, settings: Settings, certificate: Path, key: Path
) -> tuple[str, str]:
    """Trust the server's own certificate, under a name that it has."""
    from flue_grpc.security.certificate_facts import read_facts

    host = "localhost" if address.host in _EVERY_HOST else address.host
    names = read_facts(certificate, key).names
    name = names[0] if names and host not in names else ""
    place = str(type(address)(host, address.port))
    root = shlex.quote(str(certificate))
    if settings.tls_client_ca is not None:
        header, reflection = "", ""
        own, own_of_buf = "-cert YOURS.crt -key YOURS.key ", "--cert YOURS.crt --key YOURS.key "
    else:
        header, reflection = _token(settings), "--reflect-header '*' "
        own, own_of_buf = "", ""
    authority = f"-authority {shlex.quote(name)} " if name else ""
    server_name = f"--servername {shlex.quote(name)} " if name else ""
    flags_of_buf = f"{own_of_buf}{server_name}{reflection}{header}"
    return (
        f"grpcurl -cacert {root} {own}{authority}{header}{place} {_METHOD}",
        f"{_BUF} --cacert {root} {flags_of_buf}https://{place}/{_METHOD}",
    )


def _token(settings: Settings) -> str:
    """Send the first token of the server's own file."""
    first = f"awk '!/^#/{{print $2; exit}}' {shlex.quote(str(settings.token_path))}"
    return f'-H "authorization: Bearer $({first})" '
