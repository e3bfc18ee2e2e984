"""Database files: what may be opened, and how they are created (behaviour A1).

No database file is opened here: closing a descriptor of it would drop the locks
that SQLite holds on it in this process.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from pathlib import Path
from typing import Final

from flue_grpc import private_files
from flue_grpc.errors import UnusableDatabaseError

DATABASE_NAME: Final = "store.db"
LOCK_NAME: Final = "lock"
LOG_SUFFIX: Final = "-wal"
REPLACED_SUFFIX: Final = ".before-restore"
PARTIAL_SUFFIX: Final = ".partial-"
_COMPANIONS: Final = ("", LOG_SUFFIX, "-shm", "-journal")
_UNKNOWN: Final = "this file system"
_ESCAPE: Final = re.compile(rb"\\([0-7]{3})")


def refuse_wrong_kind(path: Path) -> None:
    """Raise UnusableDatabaseError unless ``path`` is missing or a readable regular file.

    Nothing is created.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise UnusableDatabaseError(f"{path} is a symbolic link to nothing") from None
        return
    except OSError as error:
        raise UnusableDatabaseError(f"{path} cannot be opened: {error.strerror}") from error
    if stat.S_ISDIR(status.st_mode):
        raise UnusableDatabaseError(f"{path} is a directory, not a database file")
    if not stat.S_ISREG(status.st_mode):
        raise UnusableDatabaseError(f"{path} is not a regular file")
    if not os.access(path, os.R_OK):
        raise UnusableDatabaseError(f"{path} cannot be read: permission denied")


def real_path(path: Path) -> Path:
    """Return where the database lies: SQLite keeps its other files there, and we the lock.

    Raises UnusableDatabaseError as ``refuse_wrong_kind``, ConfigError when the
    directory of a link is not safe.
    """
    refuse_wrong_kind(path)
    if path.is_symlink():
        private_files.make_private_directory(path.parent)
    return path.resolve()


def lock_path(path: Path) -> Path:
    """Return the owner's lock of the database at ``path``, beside the real file."""
    # Path.resolve raises for links in a circle, which whoever opens the file tells in words.
    return Path(os.path.realpath(path)).parent / LOCK_NAME


def claim(real: Path) -> private_files.OwnerLock:
    """Become the owner of the database at a real path, making its directory if it is missing.

    Raises AlreadyRunningError naming the owner, ConfigError when the directory
    is not safe.
    """
    private_files.make_private_directory(real.parent)
    return private_files.OwnerLock(real.parent / LOCK_NAME)


def refuse_other_names(path: Path) -> None:
    """Raise UnusableDatabaseError for a file with hard links; the caller holds its lock.

    Under another name it would have another lock and another log. A second name
    that a restore or a copy gave it just before it was killed is taken back.
    """
    status = path.stat()
    if status.st_nlink == 1:
        return
    for suffix in (REPLACED_SUFFIX, PARTIAL_SUFFIX):
        for other in path.parent.glob(glob.escape(path.name + suffix) + "*"):
            if os.path.samestat(other.lstat(), status):
                other.unlink()
    count = path.stat().st_nlink
    if count > 1:
        raise UnusableDatabaseError(
            f"{path} has {count} names (hard links), under each of which another server could "
            "write to it; put a copy in its place"
        )


def create_missing(path: Path) -> bool:
    """Create an empty database file 0600; False when there was one."""
    try:
        os.close(private_files.create_private_file(path))
    except FileExistsError:
        return False
    except OSError as error:
        raise UnusableDatabaseError(f"{path} cannot be created: {error.strerror}") from error
    return True


def tighten(path: Path) -> None:
    """Make the database and the files beside it 0600; what is made later inherits it."""
    for suffix in _COMPANIONS:
        try:
            private_files.tighten(with_suffix(path, suffix))
        except OSError as error:
            raise UnusableDatabaseError(
                f"the mode of {path}{suffix} cannot be set to 0600: {error.strerror}"
            ) from error


def with_suffix(path: Path, suffix: str) -> Path:
    """Return the name beside ``path``, such as ``store.db-wal``."""
    return path.with_name(path.name + suffix)


def companions(path: Path) -> list[Path]:
    """Return the files that SQLite keeps beside the database, those that are there."""
    beside = [with_suffix(path, suffix) for suffix in _COMPANIONS[1:]]
    return [companion for companion in beside if companion.exists()]


def free_name(path: Path) -> Path:
    """Return ``path``, or the first of ``path.2``, ``path.3`` … that is not taken."""
    number, free = 1, path
    while free.exists():
        number += 1
        free = with_suffix(path, f".{number}")
    return free


def refuse_name_in_use(destination: Path, path: Path) -> None:
    """Raise UnusableDatabaseError for a copy's name that belongs to a database, ``path`` or another.

    SQLite would take the copy for a journal or a log, or we for a lock; and what
    lies beside the name already would be replayed into it.
    """
    for suffix in _COMPANIONS[1:]:
        owner = destination.with_name(destination.name.removesuffix(suffix) or "x")
        if owner != destination and owner.exists():
            raise UnusableDatabaseError(
                f"{destination} is what SQLite calls a file of {owner}; choose another name"
            )
    databases = (path, destination.with_name(DATABASE_NAME))
    if Path(os.path.realpath(destination)) in [
        lock_path(each) for each in databases if each.exists()
    ]:
        raise UnusableDatabaseError(f"{destination} is the lock of a database; choose another name")
    for left in companions(destination):
        raise UnusableDatabaseError(f"{left} is left of another database; choose another name")


def remove(path: Path) -> None:
    """Remove a closed database and the files beside it, which mean nothing without it."""
    for suffix in reversed(_COMPANIONS):
        with_suffix(path, suffix).unlink(missing_ok=True)


def give_name(source: Path, destination: Path) -> None:
    """Give a file a name that is free; it keeps its old one where there are hard links.

    Raises FileExistsError when the name is taken, which a rename would replace.
    """
    try:
        os.link(source, destination)
    except FileExistsError:
        raise
    except OSError:
        if destination.exists():
            raise FileExistsError(destination) from None
        source.rename(destination)


def sync_directory(path: Path) -> None:
    """Make the names in the directory ``path`` durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def filesystem(path: Path) -> str:
    """Name the type of the file system that ``path`` is on, as the system calls it."""
    try:
        mounts = Path("/proc/self/mountinfo").read_bytes()
    except OSError:
        return _UNKNOWN
    best, name = 0, _UNKNOWN
    for line in mounts.splitlines():
        fields, _, source = line.partition(b" - ")
        mount = os.fsdecode(_ESCAPE.sub(_unescape, fields.split()[4]))
        if path.is_relative_to(mount) and len(mount) >= best:
            best, name = len(mount), os.fsdecode(source.split()[0])
    return name


def _unescape(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 8)])
