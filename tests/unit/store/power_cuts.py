"""A VFS that knows what a power cut would leave: synced bytes, and any part of the others."""

from __future__ import annotations

import apsw

SECTOR = 512


class Disk:
    """What was written to each file, and which of it was synced."""

    def __init__(self):
        self._files = {}

    def file(self, path):
        return self._files.setdefault(path, _Content())

    def cut(self, dice):
        """Return the bytes of every file after a cut: of unsynced writes some, in sectors."""
        return {path: content.cut(dice) for path, content in self._files.items()}


class _Content:
    def __init__(self):
        self.synced = bytearray()
        self.pending = []

    def write(self, data, offset):
        self.pending.append((offset, data))

    def truncate(self, size):
        self.pending.append((size, None))

    def sync(self):
        for change in self.pending:
            _apply(self.synced, *change)
        self.pending.clear()

    def cut(self, dice):
        left = bytearray(self.synced)
        share = dice.choice((0.0, 0.5, 1.0))
        for offset, data in self.pending:
            if data is None:
                if dice.random() < share:
                    _apply(left, offset, None)
                continue
            for start in range(0, len(data), SECTOR):
                if dice.random() < share:
                    _apply(left, offset + start, data[start : start + SECTOR])
        return bytes(left)


def _apply(content, offset, data):
    if data is None:
        del content[offset:]
        return
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


class _File(apsw.VFSFile):
    def __init__(self, vfs, name, flags):
        super().__init__("", name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        self._vfs = vfs
        self._content = vfs.disk.file(path)

    def xWrite(self, data, offset):
        self._vfs.before_step()
        self._content.write(bytes(data), offset)
        super().xWrite(data, offset)

    def xTruncate(self, size):
        self._vfs.before_step()
        self._content.truncate(size)
        super().xTruncate(size)

    def xSync(self, flags):
        self._vfs.before_step()
        super().xSync(flags)
        self._content.sync()


class PowerVFS(apsw.VFS):
    """Calls ``before_step`` before each change of a file, where a power cut may happen."""

    def __init__(self, name="power"):
        self.name = name
        self.disk = Disk()
        self.before_step = lambda: None
        super().__init__(name, "")

    def xOpen(self, name, flags):
        return _File(self, name, flags)
