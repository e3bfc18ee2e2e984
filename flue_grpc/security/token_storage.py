"""Making and replacing a token file: one at a time, whole or not at all, for its owner.

Whoever writes locks the file's directory, which leaves nothing behind. A file that
root replaces stays its owner's: the server of that user could not read it otherwise.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING

import msgspec

from flue_grpc.errors import ConfigError
from flue_grpc.limits import LOCK_RETRY_SECONDS, TOKEN_EDIT_WAIT_SECONDS
from flue_grpc.private_files import FILE_MODE, create_private_file, make_private_directory

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Ownership(msgspec.Struct, frozen=True):
    """A mode, and the user and group that a file is given to, if it is."""

    mode: int
    owner: tuple[int, int] | None = None


def make_token_file(path: Path, text: str) -> None:
    """Make ``path`` 0600 with this text, unless something has that name already.

    A missing directory is made 0700. Raises ConfigError when it cannot be made.
    """
    if path.exists():
        return
    make_private_directory(path.parent)
    with _locked(path.parent):
        try:
            descriptor = create_private_file(path)
        except FileExistsError:
            return
        except OSError as error:
            raise ConfigError(f"cannot make the token file {path}: {error.strerror}") from error
        try:
            _write(descriptor, text, _of_new_file(path.parent))
        except OSError as error:
            path.unlink(missing_ok=True)
            raise ConfigError(f"cannot make the token file {path}: {error.strerror}") from error


@contextmanager
def editing(path: Path) -> Iterator[Path]:
    """Keep other edits of ``path`` out, and yield the file that it leads to.

    Raises ConfigError when it leads to nothing that can be edited, or when other
    edits do not end within TOKEN_EDIT_WAIT_SECONDS.
    """
    target = _followed(path)
    with _locked(target.parent):
        yield target


def replace_token_file(path: Path, text: str) -> None:
    """Put this text in the place of what ``path`` holds; owner, group and mode stay.

    Raises ConfigError, and leaves everything as it is, when that cannot be.
    """
    try:
        ownership = _of_file(path) if path.exists() else _of_new_file(path.parent)
        descriptor, name = mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            _write(descriptor, text, ownership)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"cannot write the token file {path}: {error.strerror}") from error


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(f"cannot open the directory {directory}: {error.strerror}") from error
    try:
        _lock_patiently(descriptor, directory)
        yield
    finally:
        os.close(descriptor)


def _lock_patiently(descriptor: int, directory: Path) -> None:
    end = time.monotonic() + TOKEN_EDIT_WAIT_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= end:
                raise ConfigError(f"another command changes tokens in {directory}") from error
        except OSError as error:
            raise ConfigError(f"cannot lock {directory}: {error.strerror}") from error
        else:
            return
        time.sleep(LOCK_RETRY_SECONDS)


def _followed(path: Path) -> Path:
    try:
        target = path.resolve()
        if path.is_symlink():
            _refuse_foreign_link(path, target)
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"cannot follow the token file {path}") from error
    return target


def _refuse_foreign_link(path: Path, target: Path) -> None:
    """Let nobody have root edit the file of somebody else."""
    maker = path.lstat().st_uid
    owner = (target if target.exists() else target.parent).stat().st_uid
    if maker not in (0, owner):
        raise ConfigError(f"{path} is a link of user {maker} to a file of user {owner}")


def _of_file(path: Path) -> _Ownership:
    status = path.stat()
    return _Ownership(stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid))


def _of_new_file(directory: Path) -> _Ownership:
    """Give what root makes to the directory's owner; anything else is its maker's."""
    if os.geteuid() != 0:
        return _Ownership(FILE_MODE)
    status = directory.stat()
    return _Ownership(FILE_MODE, (status.st_uid, status.st_gid))


def _write(descriptor: int, text: str, ownership: _Ownership) -> None:
    """Write the new file and close it; raises OSError when it cannot be given away."""
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        status = os.fstat(descriptor)
        if ownership.owner is not None and ownership.owner != (status.st_uid, status.st_gid):
            os.fchown(descriptor, *ownership.owner)
        os.fchmod(descriptor, ownership.mode)
        os.fsync(descriptor)
