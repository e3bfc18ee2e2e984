"""Directories, files and locks that only their owner can use (contract "Transport and trust").

Nothing here depends on the umask: modes are set after creation as well.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from flue_grpc.errors import AlreadyRunningError, ConfigError
from flue_grpc.limits import LOCK_RETRY_SECONDS, LOCK_WAIT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import TracebackType

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def make_private_directory(path: Path) -> None:
    """Make ``path`` and its missing parents 0700; leave an existing one as it is.

    Raises ConfigError when it is no directory, cannot be made, or when others
    may replace the files in it: writable by group or others without the sticky
    bit, or owned by another user who is not root.
    """
    try:
        _make_missing(path)
        status = path.stat()
    except FileExistsError as error:
        raise ConfigError(f"{error.filename} is not a directory") from error
    except OSError as error:
        raise ConfigError(f"cannot make the directory {path}: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigError(f"{path} is not a directory")
    refuse_unsafe_directory(path, status)


def refuse_unsafe_directory(path: Path, status: os.stat_result) -> None:
    """Raise ConfigError when others may replace files in the directory ``path``."""
    mode = stat.S_IMODE(status.st_mode)
    if mode & _WRITABLE_BY_OTHERS and not mode & stat.S_ISVTX:
        raise ConfigError(
            f"others may write in {path} (mode {mode:04o}); "
            f"run `chmod go-w {path}` or choose another directory"
        )
    if os.geteuid() not in (0, status.st_uid) and status.st_uid != 0:
        raise ConfigError(f"{path} belongs to user {status.st_uid}; choose another directory")


def refuse_strange_socket(path: Path) -> None:
    """Raise ConfigError when another user made the socket ``path``, or may replace it.

    A missing one passes.
    """
    try:
        refuse_unsafe_directory(path.parent, path.parent.stat())
        owners = {path.lstat().st_uid, path.stat().st_uid}
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"cannot look at {path}: {error.strerror}") from error
    for owner in owners - {0, os.geteuid()}:
        raise ConfigError(f"{path} belongs to user {owner}; name another server")


def create_private_file(path: Path) -> int:
    """Create ``path`` 0600 and return its descriptor, open for reading and writing.

    Raises FileExistsError when the name is taken, by a dangling symlink too.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    try:
        os.fchmod(descriptor, FILE_MODE)
    except BaseException:
        os.close(descriptor)
        path.unlink()
        raise
    return descriptor


def tighten(path: Path) -> None:
    """Give an existing file mode 0600; a missing one is left missing.

    Goes by the path: opening and closing a database file would drop the POSIX
    locks that SQLite holds on it in this process.
    """
    with suppress(FileNotFoundError):
        if stat.S_IMODE(path.stat().st_mode) != FILE_MODE:
            path.chmod(FILE_MODE)


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock: ``process N``, and the addresses where it serves, if it does."""

    process: str
    addresses: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.addresses:
            return self.process
        return f"{self.process}, the server at {' and '.join(self.addresses)}"


class OwnerLock:
    """An exclusive lock on a file, held until ``release`` or the end of the process.

    The file holds the owner's process id in decimal, and below it, a line each, the
    addresses that it announces. It stays when the lock goes: unlinking it would let
    two processes lock two files of one name.
    """

    def __init__(self, path: Path) -> None:
        """Take the lock at once.

        Raises AlreadyRunningError naming the file and its owner when it stays
        taken for LOCK_WAIT_SECONDS, ConfigError when the file cannot be a lock.
        """
        self.path = path
        try:
            self._descriptor = _lock_patiently(path)
        except BlockingIOError as error:
            raise AlreadyRunningError(
                f"{path} is locked by {_read_holder(path)}; stop it first"
            ) from error
        except OSError as error:
            raise ConfigError(f"cannot lock {path}: {error.strerror}") from error
        self._write(f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Give the lock up; calling it again does nothing."""
        if self._descriptor >= 0:
            self._write(b"")
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self, text: bytes) -> None:
        # A disk that is full, or has turned read-only, takes nothing from the lock itself.
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, text, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


def holder_of(path: Path) -> Holder | None:
    """Say who holds the lock at ``path``; None when nobody does.

    Its addresses are left out where somebody else may have written them: another
    user, not root, who owns the lock or may replace the files of its directory.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _read_holder(path)
        return holder if _is_trusted(descriptor, path) else Holder(holder.process)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None


def _is_trusted(descriptor: int, path: Path) -> bool:
    try:
        refuse_unsafe_directory(path.parent, path.parent.stat())
    except (ConfigError, OSError):
        return False
    is_ours = os.fstat(descriptor).st_uid in {0, os.geteuid()}
    return is_ours and _is_file_at(descriptor, path)


def announce(path: Path, addresses: Iterable[str]) -> None:
    """Write into the lock at ``path``, if this process holds it, where it listens."""
    mine = f"{os.getpid()}\n".encode()
    lines = b"".join(os.fsencode(address) + b"\n" for address in addresses if "\n" not in address)
    with suppress(OSError):
        if path.read_bytes() == mine:
            descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                os.pwrite(descriptor, lines, len(mine))
            finally:
                os.close(descriptor)


def _make_missing(path: Path) -> None:
    if path.exists():
        return
    _make_missing(path.parent)
    # Another process that starts at the same time may have made it meanwhile.
    with suppress(FileExistsError):
        path.mkdir(mode=DIRECTORY_MODE)
        path.chmod(DIRECTORY_MODE)


def _lock_patiently(path: Path) -> int:
    """Take the lock. Raises BlockingIOError when it stays taken, and OSError.

    A child that a killed owner was just starting may hold the lock until its exec.
    """
    end = time.monotonic() + LOCK_WAIT_SECONDS
    while True:
        try:
            return _lock(path)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise
        time.sleep(LOCK_RETRY_SECONDS)


def _lock(path: Path) -> int:
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, FILE_MODE)
        try:
            _flock_regular(descriptor)
            if _is_file_at(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _flock_regular(descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.fchmod(descriptor, FILE_MODE)


def _is_file_at(descriptor: int, path: Path) -> bool:
    """Whether the file was not replaced between opening and locking it."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    return False


def _read_holder(path: Path) -> Holder:
    with suppress(OSError):
        process, *addresses = os.fsdecode(path.read_bytes()).splitlines() or [""]
        if process.isdecimal():
            return Holder(f"process {process}", tuple(addresses))
    return Holder("another process")
