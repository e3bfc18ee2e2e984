"""The addresses that a server listens on (contract "Transport and trust")."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from string import ascii_letters
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from flue_grpc.errors import ConfigError
from flue_grpc.limits import MAX_SOCKET_PATH_BYTES
from flue_grpc.private_files import OwnerLock, make_private_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import grpc

_UNIX: Final = "unix:"
_ABSTRACT: Final = "unix-abstract:"
_SOCKET_UMASK: Final = 0o177
_PORTS: Final = range(65_536)


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A socket in the file system; ``path`` is absolute."""

    path: Path

    @property
    def target(self) -> str:
        """The address as gRPC takes it: a URI."""
        return _UNIX + quote(os.fsencode(self.path))

    def __str__(self) -> str:
        return f"{_UNIX}{self.path}"


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """A host, an IPv6 address without its brackets, and a port; 0 is any free one."""

    host: str
    port: int

    @property
    def target(self) -> str:
        """The address as gRPC takes it."""
        return str(self)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


Address = UnixAddress | TcpAddress


def parse_address(text: str) -> Address:
    """Read ``unix:PATH``, ``HOST:PORT`` or ``[IPV6]:PORT``; raises ConfigError."""
    if text.startswith(_ABSTRACT):
        raise ConfigError(
            f"{text}: an abstract socket has no permissions; use unix:PATH, which has"
        )
    if text.startswith(_UNIX):
        return _unix(text)
    host, separator, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    is_host = bool(bare) and "/" not in bare and (":" not in bare or bare != host)
    if not separator or not is_host or not port.isdecimal():
        raise ConfigError(f"{text!r} is neither unix:PATH nor HOST:PORT")
    if int(port) not in _PORTS:
        raise ConfigError(f"{text!r}: a port is a number from 0 to {_PORTS[-1]}")
    return TcpAddress(bare, int(port))


def lock_socket(address: UnixAddress) -> OwnerLock:
    """Make the socket's directory and become the owner of the socket's path.

    grpcio alone would take a path away from the server that listens there.
    Raises AlreadyRunningError, or ConfigError for an unsafe directory and for
    a path where something else lies.
    """
    make_private_directory(address.path.parent)
    lock = OwnerLock(address.path.with_name(address.path.name + ".lock"))
    try:
        _check_free(address.path)
    except ConfigError:
        lock.release()
        raise
    return lock


def bind(
    server: grpc.Server, address: Address, credentials: grpc.ServerCredentials | None
) -> Address:
    """Listen, and return the address with its real port; raises ConfigError.

    A socket stays when the server ends; ``removal`` says how it goes.
    """
    try:
        if isinstance(address, UnixAddress):
            _bind_unix(server, address.path, credentials)
            return address
        return TcpAddress(address.host, _add_port(server, address.target, credentials))
    except RuntimeError as error:
        raise ConfigError(f"cannot listen on {address}; is the address in use?") from error


def removal(address: UnixAddress) -> Callable[[], None]:
    """Return what removes the socket that lies there now, and no later one of that name."""
    ours = address.path.lstat()

    def remove() -> None:
        with suppress(FileNotFoundError):
            if os.path.samestat(address.path.lstat(), ours):
                address.path.unlink()

    return remove


def _bind_unix(server: grpc.Server, path: Path, credentials: grpc.ServerCredentials | None) -> None:
    """Listen under another name first: at its end gRPC removes whatever has the name it knows."""
    if not os.access(path.parent, os.W_OK):
        raise ConfigError(f"{path.parent} cannot be written, so there can be no socket in it")
    first = _free_name(path)
    with _private_sockets():
        _add_port(server, UnixAddress(first).target, credentials)
    try:
        first.rename(path)
    except OSError as error:
        first.unlink(missing_ok=True)
        raise ConfigError(
            f"cannot make the socket {path}: {error.strerror}; is that name another user's?"
        ) from error


def _free_name(path: Path) -> Path:
    """Return a name beside ``path`` that nothing has, and that is no longer."""
    names = (path.with_name(path.name[:-1] + letter) for letter in ascii_letters)
    free = next((name for name in names if not os.path.lexists(name)), None)
    if free is None:
        raise ConfigError(f"{path.parent} is too full for a socket; choose another directory")
    return free


def _add_port(server: grpc.Server, target: str, credentials: grpc.ServerCredentials | None) -> int:
    if credentials is None:
        return server.add_insecure_port(target)
    return server.add_secure_port(target, credentials)


def _unix(text: str) -> UnixAddress:
    name = text.removeprefix(_UNIX)
    if name.startswith("//"):
        name = "/" + name.lstrip("/")
    if not name or "\0" in name:
        raise ConfigError(f"{text!r} has no path")
    path = Path(name).expanduser().absolute()
    size = len(os.fsencode(path))
    if size > MAX_SOCKET_PATH_BYTES:
        raise ConfigError(
            f"{path}: the path of a socket has at most {MAX_SOCKET_PATH_BYTES} bytes, "
            f"this one has {size}; choose a shorter one with --listen unix:PATH"
        )
    if "," in str(path):
        raise ConfigError(
            f"{path}: gRPC takes no comma in the path of a socket; "
            "choose another one with --listen unix:PATH"
        )
    return UnixAddress(path)


def _check_free(path: Path) -> None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    # Our lock is held: a socket is what a server left behind that was killed.
    if not stat.S_ISSOCK(status.st_mode):
        raise ConfigError(f"{path} exists and is not a socket; remove it or choose another")


@contextmanager
def _private_sockets() -> Iterator[None]:
    """Let nobody else connect, from the first moment on."""
    before = os.umask(_SOCKET_UMASK)
    try:
        yield
    finally:
        os.umask(before)
