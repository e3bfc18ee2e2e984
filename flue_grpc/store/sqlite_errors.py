"""SQLite's errors as errors of the product (contract, error table)."""

from __future__ import annotations

from typing import Final

import apsw

from flue_grpc.errors import (
    DatabaseBusyError,
    DatabaseCorruptError,
    DatabaseIoError,
    DiskFullError,
    StoreReadOnlyError,
)

_FAILED_SYNC: Final = (apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC)


def is_failed_sync(error: BaseException) -> bool:
    """Whether the system could not say that written bytes reached the disk."""
    return getattr(error, "extendedresult", None) in _FAILED_SYNC


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
