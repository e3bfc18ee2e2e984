"""The whole JSON objects of a damaged line (formats §1.3, §6, §8.10).

A crash or a second writer leaves NULs, bytes that are not UTF-8, half an escape pair,
raw control characters, or two records on one line. Whatever is still a whole object,
from the line's start up to the first real damage, is read. What is sound costs a pass of
the JSON decoder; only in damaged objects are brackets looked at, and characters mended,
one by one, and no more than REPAIR_STEPS of them in a line: what lies behind is damage.
"""

from __future__ import annotations

import codecs
import re
from io import BytesIO
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.limits import LINE_OBJECTS, MIB, REPAIR_STEPS

if TYPE_CHECKING:
    from collections.abc import Iterator

_BOM: Final = b"\xef\xbb\xbf"
# NULs are what a file system leaves of a block that was never written.
_BLANK: Final = re.compile(rb"[\x00 \t\r\n]*+")
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# Always matches, so that looking for the next bracket never begins again behind it.
_TO_BRACKET: Final = re.compile(
    rb'[^"{}\[\]]*+(?:' + _STRING + rb'[^"{}\[\]]*+)*+(["{}\[\]]|\Z)', re.DOTALL
)
_SOUND_STRING: Final = (
    rb'"[^"\\\x00-\x1f]*+(?:\\(?:[^u]|u(?:[^dD"\\]|[dD][0-7]))[^"\\\x00-\x1f]*+)*+"'
)
_TO_UNSOUND: Final = re.compile(
    rb'([^"]*+(?:' + _SOUND_STRING + rb'[^"]*+)*+)(' + _STRING + rb'|"|\Z)', re.DOTALL
)
_IN_STRING: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair is sound
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|\\."
    rb"|([\x00-\x1f])",
    re.DOTALL,
)
_CONTROLS: Final = bytes(range(ord(" ")))
_TRAILING: Final = re.compile(r"trailing characters \(byte ([0-9]+)\)")


# Deeper values pass the recursion limit of every reader, so they are damage.
NESTING: Final = 1000


class _Anything(msgspec.Struct):
    """An object of which no member is of interest."""


_check: Final = msgspec.json.Decoder(_Anything).decode


def is_object(data: bytes | memoryview) -> bool:
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
    end = 0
    for _, end in _objects(line):  # noqa: B007 - the last one is what is asked for
        pass
    return end


def _objects(line: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield (valid JSON, end of the object and of the blanks after it)."""
    view = memoryview(line)
    position = _after_blank(line, len(_BOM) if line.startswith(_BOM) else 0)
    steps = REPAIR_STEPS
    for _ in range(LINE_OBJECTS):
        end = position + _sound_end(view[position:])
        if end > position:
            sound: bytes | None = _utf8(line[position:end].rstrip())
        elif steps == REPAIR_STEPS and not _unsound(line[position:]):
            return  # nothing to mend
        else:
            end, steps = _object_end(line, position, steps)
            data = _utf8(line[position:end])
            steps -= _unsound(data)
            sound = _mended(data) if steps > 0 else None
        if sound is None:
            return
        position = _after_blank(line, end)
        yield sound, position


def _after_blank(line: bytes, position: int) -> int:
    match = _BLANK.match(line, position)
    return match.end() if match else position


def _sound_end(data: memoryview) -> int:
    """Return where the sound object ends that ``data`` begins with, 0 if none does."""
    try:
        _check(data)
    except RecursionError:
        return 0
    except msgspec.MsgspecError as error:
        # The decoder tells how far it came, counted from 1.
        match = _TRAILING.search(str(error))
        end = int(match[1]) - 1 if match else 0
        return end if end and is_object(data[:end]) else 0
    return len(data)


def _object_end(line: bytes, start: int, steps: int) -> tuple[int, int]:
    """Return where the brackets that open at ``start`` are closed, or ``start`` if nowhere.

    Looks at no more than ``steps`` of them; returns how many more it might have as well.
    """
    if line[start : start + 1] != b"{":
        return start, steps
    depth = 0
    for match in _TO_BRACKET.finditer(line, start):
        bracket = match[1]
        steps -= 1
        if bracket in {b"{", b"["}:
            depth += 1
        elif bracket in {b"}", b"]"}:
            depth -= 1
            if not depth:
                return match.end(), steps
        else:
            break
        if depth > NESTING or steps <= 0:
            break
    return start, steps


def _unsound(data: bytes) -> int:
    """Count what ``_mended`` may have to look at: at C speed, and rather too much."""
    controls = len(data) - len(data.translate(None, _CONTROLS))
    return controls + data.count(b"\\ud") + data.count(b"\\uD")


def _mended(data: bytes) -> bytes | None:
    """Return UTF-8 as a valid JSON object, None when it is none."""
    mended = _TO_UNSOUND.sub(_mend_string, data) if data else data
    return mended if is_object(mended) else None


def _utf8(data: bytes) -> bytes:
    """Return ``data`` with U+FFFD for what is no UTF-8; holds little beside the two."""
    if data.isascii():
        return data
    decoder, mended = codecs.getincrementaldecoder("utf-8")("replace"), BytesIO()
    for at in range(0, len(data), MIB):
        mended.write(decoder.decode(data[at : at + MIB]).encode())
    mended.write(decoder.decode(b"", final=True).encode())
    return mended.getvalue()


def _mend_string(match: re.Match[bytes]) -> bytes:
    return match[1] + _IN_STRING.sub(_mend, match[2])


def _mend(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return b"\\ufffd"
    if match[2]:
        return b"\\u%04x" % match[2][0]
    return match[0]
