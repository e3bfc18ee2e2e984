"""The directories and files of the service: configuration, Store, index."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

import apsw
import msgspec

from flue_grpc.agentindex.index_file import index_path
from flue_grpc.agentindex.index_rows import load_entries
from flue_grpc.config import config_path
from flue_grpc.doctor.database import database
from flue_grpc.doctor.findings import in_bytes, note, ok, problem
from flue_grpc.errors import ConfigError
from flue_grpc.limits import DOCTOR_FREE_BYTES
from flue_grpc.private_files import holder_of, refuse_unsafe_directory
from flue_grpc.render.amounts import counted
from flue_grpc.services import DATABASE_NAME, index_settings
from flue_grpc.store import files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from flue_grpc.config import Configuration
    from flue_grpc.doctor.findings import Finding

_NETWORK: Final = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs")


def configuration_file(flags: Mapping[str, object], env: Mapping[str, str]) -> Iterator[Finding]:
    """Say which configuration file is read."""
    path, _ = config_path(flags, env)
    yield ok("configuration", str(path) if path.exists() else f"{path}: none, defaults hold")


def store(configuration: Configuration) -> Iterator[Finding]:
    """Look at the data directory and the database without changing either."""
    directory = configuration.settings.data_dir
    if not directory.exists():
        yield note("data", f"{directory} is not there yet", "`flue-grpc serve` makes it")
        return
    yield from _directory("data", directory)
    yield from database(directory / DATABASE_NAME)


def index(configuration: Configuration, env: Mapping[str, str]) -> Iterator[Finding]:
    """Look at the index file of this home, read-only."""
    settings = index_settings(configuration, env)
    if not settings.directory.exists():
        yield note("index", f"{settings.directory} is not there yet", "`flue-grpc serve` makes it")
        return
    yield from _directory("index", settings.directory)
    path = index_path(settings.directory, settings.home)
    if not path.exists():
        yield note("index", f"no transcript of {settings.home} is indexed yet")
        return
    try:
        sessions, count = _transcripts(path)
    except (apsw.Error, msgspec.MsgspecError):
        yield note("index", f"{path} cannot be read", "the next start makes it anew")
    else:
        size = in_bytes(_size(path) + _size(path.with_name(f"{path.name}-wal")))
        holder = holder_of(path.with_suffix(".lock"))
        use = f", in use by {holder}" if holder else ""
        read = f"{counted(sessions, 'transcript')} in {counted(count, 'file')}"
        yield ok("index", f"{path}: {read}, {size}{use}")


def _directory(subject: str, path: Path) -> Iterator[Finding]:
    try:
        status = path.stat()
        refuse_unsafe_directory(path, status)
    except (ConfigError, OSError) as error:
        yield problem(subject, str(error), f"let {path} be yours alone: `chmod 700 {path}`")
        return
    mode = stat.S_IMODE(status.st_mode)
    kind = files.filesystem(path.resolve())
    free = shutil.disk_usage(path).free
    if not os.access(path, os.W_OK | os.X_OK):
        yield problem(subject, f"{path} cannot be written (mode {mode:04o})", f"`chmod 700 {path}`")
    elif kind in _NETWORK:
        yield problem(
            subject, f"{path} is on {kind}, where SQLite's locks are not safe", "use a local disk"
        )
    elif free < DOCTOR_FREE_BYTES:
        yield problem(subject, f"{path} has {in_bytes(free)} left", "free some space")
    else:
        yield ok(subject, f"{path} (mode {mode:04o}, {kind}, {in_bytes(free)} free)")


def _transcripts(path: Path) -> tuple[int, int]:
    """Count the sessions, as the metrics do, and the files that were read for them."""
    sessions, count = set(), 0
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        for entry in load_entries(connection):
            count += 1
            if entry.record.summary is not None:
                sessions.add((entry.record.summary.tool, entry.record.summary.id))
    return len(sessions), count


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0
