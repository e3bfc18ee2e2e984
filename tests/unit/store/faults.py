"""A VFS over the default one whose reads, writes and syncs fail on demand."""

from __future__ import annotations

import errno
from collections import Counter

import apsw


class Fault:
    """What goes wrong: ``operation`` ("read", "write", "sync") on files that end in ``suffix``.

    It happens at the ``at``-th such call from now on, and ``times`` calls in all. A torn
    write leaves the first half of its bytes behind.
    """

    def __init__(self, operation, suffix, error, at=1, times=1, *, is_torn=False):
        self.operation = operation
        self.suffix = suffix
        self.error = error
        self.at = at
        self.times = times
        self.is_torn = is_torn
        self.happened = 0

    def hits(self, operation, suffix):
        if (operation, suffix) != (self.operation, self.suffix) or self.happened >= self.times:
            return False
        self.at -= 1
        if self.at > 0:
            return False
        self.happened += 1
        return True


def io_error(extended):
    error = apsw.IOError("injected")
    error.extendedresult = extended
    return error


def full():
    return apsw.FullError("injected")


class FaultyFile(apsw.VFSFile):
    def __init__(self, vfs, name, flags):
        super().__init__("", name, flags)
        self._vfs = vfs
        filename = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        stem = "store.db"
        self._suffix = filename[filename.rfind(stem) + len(stem) :] if stem in filename else "?"

    def _maybe_fail(self, operation, tear=lambda: None):
        self._vfs.calls[operation, self._suffix] += 1
        for fault in self._vfs.faults:
            if fault.hits(operation, self._suffix):
                if fault.is_torn:
                    tear()
                raise fault.error

    def xRead(self, amount, offset):
        self._maybe_fail("read")
        return super().xRead(amount, offset)

    def xWrite(self, data, offset):
        whole = super().xWrite
        self._maybe_fail("write", lambda: whole(data[: len(data) // 2], offset))
        whole(data, offset)

    def xSync(self, flags):
        self._maybe_fail("sync")
        super().xSync(flags)


class FaultyVFS(apsw.VFS):
    """Use as ``StoreSettings(vfs=faulty.name)``; set ``faults`` at any time."""

    def __init__(self, name="faulty"):
        self.name = name
        self.faults = []
        self.calls = Counter()
        super().__init__(name, "")

    def xOpen(self, name, flags):
        return FaultyFile(self, name, flags)


SYNC = apsw.SQLITE_IOERR_FSYNC
WRITE = apsw.SQLITE_IOERR_WRITE
READ = apsw.SQLITE_IOERR_READ
NO_SPACE = errno.ENOSPC
