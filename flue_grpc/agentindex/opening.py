"""Opening a transcript: never blocking, never following, never touching (behaviour B2)."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from flue_grpc.agentindex.records import mtime_ns
from flue_grpc.errors import TranscriptNotFoundError
from flue_grpc.limits import HEAD_BYTES

if TYPE_CHECKING:
    from types import TracebackType

_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
# Not on every system; spares the reader from changing what it reads.
_NO_ACCESS_TIME: Final = getattr(os, "O_NOATIME", 0)
_DIGEST_BYTES: Final = 10


class OpenTranscript:
    """An open transcript as it was at the moment of opening.

    ``size`` is in bytes, ``mtime_ns`` is that of ``records``. A file that grows
    afterwards is read up to ``size``; one that shrinks gives fewer bytes.
    """

    __slots__ = ("_head", "device", "fd", "inode", "mode", "mtime_ns", "size")

    def __init__(self, fd: int, status: os.stat_result) -> None:
        """Own ``fd``; ``status`` is its fstat."""
        self.fd = fd
        self.size = status.st_size
        self.mtime_ns = mtime_ns(status)
        self.inode = status.st_ino
        self.device = status.st_dev
        self.mode = status.st_mode
        self._head: bytes | None = None

    @property
    def head(self) -> bytes:
        """The first bytes, at most HEAD_BYTES; read once."""
        if self._head is None:
            self._head = os.pread(self.fd, min(self.size, HEAD_BYTES), 0)
        return self._head

    @property
    def revision(self) -> str:
        """An opaque mark of the file's identity and first bytes (contract "Offsets").

        Appends leave it as it is once the first line is complete or HEAD_BYTES long;
        one taken before that is still accepted by ``has_revision``.
        """
        line_end = self.head.find(b"\n") + 1
        return self._mark(line_end or len(self.head))

    def has_revision(self, revision: str) -> bool:
        """Whether ``revision``, taken earlier, still describes this file."""
        length, _, _ = revision.partition("-")
        if not (length.isascii() and length.isdigit() and len(length) <= len(str(HEAD_BYTES))):
            return False
        return int(length) <= len(self.head) and revision == self._mark(int(length))

    def close(self) -> None:
        """Give the descriptor back; calling it again does nothing."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _mark(self, length: int) -> str:
        digest = blake2b(self.head[:length], digest_size=_DIGEST_BYTES, salt=self._inode_salt())
        return f"{length}-{digest.hexdigest()}"

    def _inode_salt(self) -> bytes:
        return (self.inode & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "little")


def open_transcript(path: str, root: str) -> OpenTranscript:
    """Open the transcript at ``path``; both paths are free of symbolic links.

    Raises TranscriptNotFoundError when it is gone, cannot be read, is no regular
    file, or no longer lies inside ``root``. A FIFO or device in its place never
    blocks the caller.
    """
    try:
        fd = _open_untouched(path)
    except (OSError, ValueError) as error:
        raise TranscriptNotFoundError("the transcript cannot be read") from error
    try:
        status = os.fstat(fd)
        sound = stat.S_ISREG(status.st_mode) and _lies_inside(fd, status, path, root)
    except BaseException:
        os.close(fd)
        raise
    if not sound:
        os.close(fd)
        raise TranscriptNotFoundError("the transcript is no regular file in its directory")
    return OpenTranscript(fd, status)


def _open_untouched(path: str) -> int:
    try:
        return os.open(path, _FLAGS | _NO_ACCESS_TIME)
    except PermissionError:
        # Only the owner of a file may leave its access time alone.
        return os.open(path, _FLAGS)


def _lies_inside(fd: int, status: os.stat_result, path: str, root: str) -> bool:
    if not path.startswith(root.rstrip("/") + "/"):
        return False
    with suppress(OSError):
        # Names what was opened, whatever the path leads to by now; not on every system.
        if os.readlink(f"/proc/self/fd/{fd}") == path:  # noqa: PTH115 - Path is far slower
            return True
    return _is_same_file(path, status)


def _is_same_file(path: str, status: os.stat_result) -> bool:
    try:
        return os.path.realpath(path) == path and os.path.samestat(Path(path).stat(), status)
    except OSError:
        return False
