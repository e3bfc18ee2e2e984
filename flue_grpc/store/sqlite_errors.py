"""SQLite's errors as errors of the product (contract, error table)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import apsw

from flue_grpc import limits
from flue_grpc.errors import (
    DatabaseBusyError,
    DatabaseCorruptError,
    DatabaseIoError,
    DiskFullError,
    StoreReadOnlyError,
)

if TYPE_CHECKING:
    from pathlib import Path

_ROOM: Final = 64 * limits.KIB  # for the shared memory beside a log, which takes 32 KiB at first
_FAILED_SYNC: Final = (apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC)


def is_failed_sync(error: BaseException) -> bool:
    """Whether the system could not say that written bytes reached the disk."""
    return getattr(error, "extendedresult", None) in _FAILED_SYNC


def in_words(error: apsw.Error, directory: Path) -> str:
    """Say what went wrong with a file in ``directory``; SQLite calls a full disk many names."""
    if isinstance(error, apsw.FullError) or (_is_of_system(error) and _is_full(directory)):
        return "the disk is full"
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return "it is damaged"
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return "it is locked by another program"
    # A failed copy has no message of its own.
    name = apsw.mapping_result_codes.get(getattr(error, "result", -1), "")
    return str(name) if str(error) == "not an error" else str(error)


def _is_of_system(error: apsw.Error) -> bool:
    return isinstance(error, (apsw.IOError, apsw.CantOpenError))


def _is_full(directory: Path) -> bool:
    try:
        room = os.statvfs(directory)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < _ROOM


def translate(error: apsw.Error) -> Exception:
    """Return the error to raise instead of ``error``; itself when it is a defect of ours."""
    if isinstance(error, (apsw.BusyError, apsw.LockedError, apsw.ProtocolError)):
        return DatabaseBusyError("the database is locked by another process")
    if isinstance(error, apsw.FullError):
        return DiskFullError("the disk is full; nothing was written")
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError, apsw.FormatError)):
        return DatabaseCorruptError("the database is damaged; run `flue-grpc check`")
    if isinstance(error, (apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError)):
        return StoreReadOnlyError("the database cannot be written")
    if isinstance(error, (apsw.IOError, apsw.CantOpenError, apsw.NoLFSError)):
        return DatabaseIoError("the database could not be read or written")
    return error
