"""The server that a person names: its address as people write it, and whether it answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from flue_grpc.commands.running import answers
from flue_grpc.errors import ConfigError

if TYPE_CHECKING:
    import argparse

    from flue_grpc.client import CallError, Target

_UNIX: Final = "unix:"
_PLAINTEXT: Final = "http://"
_TLS: Final = "https://"
_REACH_SECONDS: Final = 5.0
_NOT_TRUSTED: Final = "CERTIFICATE_VERIFY_FAILED"
_NOT_TLS: Final = "WRONG_VERSION_NUMBER"
_FLAGS: Final = "--tls, --ca, --cert and --key go with --server"


def add_server(group: argparse._ArgumentGroup, default: str) -> None:
    """Add the flags that name a server and what its TLS needs."""
    group.add_argument(
        "--server", metavar="ADDRESS", help=f"unix:PATH or HOST:PORT (default: {default})"
    )
    group.add_argument("--tls", action="store_true", help="use TLS, with the system's roots")
    group.add_argument("--ca", type=Path, metavar="FILE", help="PEM root of the server; means TLS")
    group.add_argument("--cert", type=Path, metavar="FILE", help="PEM of your own for mutual TLS")
    group.add_argument("--key", type=Path, metavar="FILE", help="PEM of its private key")


def named(arguments: argparse.Namespace, token: str = "") -> Target | None:
    """Make the target that ``--server`` names; None without it. Raises ConfigError."""
    from flue_grpc.client.target import Target

    if not arguments.server:
        if arguments.tls or arguments.ca or arguments.cert or arguments.key:
            raise ConfigError(_FLAGS)
        return None
    return Target(
        address=address_of(arguments.server),
        token=token,
        tls=arguments.tls or arguments.server.startswith(_TLS),
        root_certificates=_read(arguments.ca),
        certificate=_read(arguments.cert),
        private_key=_read(arguments.key),
    )


def address_of(text: str) -> str:
    """Read an address as gRPC does, as a URL, or as the path of a socket."""
    for scheme in (_PLAINTEXT, _TLS):
        if text.startswith(scheme):
            return text.removeprefix(scheme).rstrip("/")
    if text.startswith(_UNIX):
        path = text.removeprefix(_UNIX)
        # unix:///path is the same as unix:/path.
        path = "/" + path.lstrip("/") if path.startswith("//") else path
        return f"{_UNIX}{Path(path).expanduser().absolute()}" if path else text
    if text.startswith(("/", "./", "../", "~/")):
        return f"{_UNIX}{Path(text).expanduser().absolute()}"
    return text


def reach(target: Target) -> None:
    """Try once whether a server answers, where calls would go on trying for seconds.

    Raises CallError with what may help when none does.
    """
    import grpc

    from flue_grpc.client import CallError, Client, RetryPolicy

    with Client(target, retry=RetryPolicy(attempts=1)) as client:
        try:
            client.is_serving(timeout=_REACH_SECONDS)
        except CallError as error:
            lost = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
            if error.reason or error.code not in lost:
                raise
            why = _why(target, error)
            raise CallError(error.code, f"no answer from {target.address}{why}") from error


def _why(target: Target, error: CallError) -> str:
    if not target.is_secure:
        if not target.is_unix and answers(target.address):
            return " in plaintext; if it speaks TLS, use --tls or --ca FILE"
        return "; does a server run there?"
    text = f" over TLS: {error.message}"
    if _NOT_TRUSTED in error.message:
        return f"{text}; --ca FILE names the root of its certificate"
    if _NOT_TLS in error.message:
        return f"{text}; if it speaks plaintext, leave --tls, --ca and --cert out"
    if target.certificate is None and answers(target.address):
        return f"{text}; if it demands certificates, use --cert FILE and --key FILE"
    return text


def _read(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
