"""The whole JSON objects of a damaged line (formats §1.3, §6, §8.10).

A crash or a second writer leaves NULs, bytes that are not UTF-8, half an escape pair,
raw control characters, or two records on one line. Whatever is still a whole object,
from the line's start up to the first real damage, is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.limits import LINE_OBJECTS

if TYPE_CHECKING:
    from collections.abc import Iterator

_BOM: Final = b"\xef\xbb\xbf"
# NULs are what a file system leaves of a block that was never written.
_BLANK: Final = re.compile(rb"[\x00 \t\r\n]*+")
_STRUCTURE: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]]', re.DOTALL)
_IN_STRING: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair is sound
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|\\."
    rb"|([\x00-\x1f])",
    re.DOTALL,
)


# Deeper values pass the recursion limit of every reader, so they are damage.
NESTING: Final = 1000


class _Anything(msgspec.Struct):
    """An object of which no member is of interest."""


_check: Final = msgspec.json.Decoder(_Anything).decode


def is_object(data: bytes) -> bool:
    """Say whether ``data`` is one JSON object; text is not checked for being UTF-8."""
    try:
        _check(data)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def whole_objects(line: bytes) -> Iterator[bytes]:
    """Yield the whole objects before the first damage, each as valid JSON in UTF-8.

    Lone surrogates and undecodable bytes are U+FFFD in them. At most LINE_OBJECTS;
    never raises; linear in the line.
    """
    return (data for data, _ in _objects(line))


def whole_end(line: bytes) -> int:
    """Return the bytes of ``line`` that its whole objects and blanks after them take up.

    0 when it does not start with one; ``len(line)`` when nothing else is in it. Each
    beginning of a line that ends with a whole object has all its bytes in this sense.
    """
    if is_object(line):
        return len(line)
    ends = [end for _, end in _objects(line)]
    return ends[-1] if ends else 0


def _objects(line: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield (valid JSON, end of the object and of the blanks after it)."""
    position = _after_blank(line, len(_BOM) if line.startswith(_BOM) else 0)
    if is_object(rest := line[position:]):
        yield rest.rstrip().decode("utf-8", "replace").encode(), len(line)
        return
    for _ in range(LINE_OBJECTS):
        end = _object_end(line, position)
        sound = _sound(line[position:end])
        if sound is None:
            return
        position = _after_blank(line, end)
        yield sound, position


def _after_blank(line: bytes, position: int) -> int:
    match = _BLANK.match(line, position)
    return match.end() if match else position


def _object_end(line: bytes, start: int) -> int:
    """Return where the brackets that open at ``start`` are closed, or ``start`` if nowhere."""
    if line[start : start + 1] != b"{":
        return start
    depth = 0
    for match in _STRUCTURE.finditer(line, start):
        token = match[0]
        if token in b"{[":
            depth += 1
            if depth > NESTING:
                break
        elif token in b"}]":
            depth -= 1
            if not depth:
                return match.end()
        elif token == b'"':
            break
    return start


def _sound(data: bytes) -> bytes | None:
    """Return ``data`` as a valid JSON object in UTF-8, None when it is none."""
    data = data.decode("utf-8", "replace").encode()
    if is_object(data):
        return data
    mended = _STRUCTURE.sub(_mend_string, data)
    return mended if is_object(mended) else None


def _mend_string(match: re.Match[bytes]) -> bytes:
    return _IN_STRING.sub(_mend, match[0])


def _mend(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return b"\\ufffd"
    if match[2]:
        return b"\\u%04x" % match[2][0]
    return match[0]
