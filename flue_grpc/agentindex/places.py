"""Where an offset that a client names leads in a transcript (behaviour B6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.agentindex.json_repair import whole_end
from flue_grpc.limits import LINE_BYTES

if TYPE_CHECKING:
    from flue_grpc.agentindex.transcript_file import TranscriptFile

_BLANKS: Final = b"\0 \t\r"
_GLANCE_BYTES: Final = 256  # tells most places inside an object from the end of one


class Place(msgspec.Struct, frozen=True):
    """Parsing goes on at ``position``, in the line that begins at ``line_start``.

    They differ where ``position`` is the end of a whole object inside the line, and
    at the end of the file, where no line begins any more.
    """

    line_start: int
    position: int


def place_onward(file: TranscriptFile, offset: int) -> Place:
    """Return where reading onward from ``offset`` begins.

    Inside a line that is behind a whole object of it, else at the next line.
    """
    if offset >= file.size:
        return Place(file.size, file.size)
    start = _start_of_whole(file, offset)
    if start is not None:
        return Place(start, offset)
    following = file.line_end(offset)
    return Place(file.size, offset) if following is None else Place(following, following)


def place_backward(file: TranscriptFile, offset: int) -> int:
    """Return where the last line, or part of one, ends that lies wholly before ``offset``."""
    if offset >= file.size:
        return _end_of_whole(file)
    if _start_of_whole(file, offset) is not None:
        return offset
    return file.line_start(offset)


def _start_of_whole(file: TranscriptFile, offset: int) -> int | None:
    """Return the start of the line that has whole objects and nothing else before ``offset``."""
    if offset == 0:
        return 0
    glance = file.read(max(0, offset - _GLANCE_BYTES), min(offset, _GLANCE_BYTES))
    if glance.endswith(b"\n"):
        return offset
    if not (glance.rstrip(_BLANKS) or b"}").endswith(b"}"):
        return None
    start = file.line_start(offset, floor=offset - LINE_BYTES - 1)
    if offset - start > LINE_BYTES:
        return None
    head = file.read(start, offset - start)
    return start if whole_end(head) == len(head) else None


def _end_of_whole(file: TranscriptFile) -> int:
    """Return the end of the last whole object, or line, of the file."""
    size = file.size
    if size == 0 or file.read(size - 1, 1) == b"\n":
        return size
    start = file.line_start(size)
    if size - start > LINE_BYTES:
        return start
    return start + whole_end(file.read(start, size - start))
