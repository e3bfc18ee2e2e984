"""Grouping the lines of one open transcript into pages (behaviour B6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from flue_grpc import limits
from flue_grpc.agentindex.page_lines import ANY_LENGTH, BackwardLines, OnwardLines
from flue_grpc.agentindex.places import place_backward, place_onward
from flue_grpc.agentindex.values import Page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flue_grpc.agentindex.page_lines import Parser, ReadLine
    from flue_grpc.agentindex.values import Message


class Extent(msgspec.Struct, frozen=True):
    """The most that a page takes besides its first line: messages, bytes of file and of text."""

    messages: int
    text_bytes: int = limits.PAGE_TEXT_BYTES
    file_bytes: int = limits.PAGE_FILE_BYTES


class Pages(Protocol):
    """Consecutive pages of one transcript."""

    def page(self, extent: Extent) -> Page:
        """Return the next page; it is empty where nothing is left."""

    def goes_on(self, messages: int) -> bool:
        """Whether a line is left that has at most ``messages``."""


class OnwardPages:
    """Pages from an offset to the end of the file."""

    __slots__ = ("_file", "_lines", "_position", "_revision")

    def __init__(self, parser: Parser, revision: str, offset: int) -> None:
        """Begin at ``offset``, or where it leads."""
        place = place_onward(parser.file, offset)
        self._file = parser.file
        self._revision = revision
        self._position = place.position
        self._lines = OnwardLines(parser, place)

    def page(self, extent: Extent) -> Page:
        """Return the next page."""
        taken = _take(self._lines, extent)
        start = _first_message_line(taken, self._position)
        self._position = taken[-1].end if taken else self._position
        return Page(
            messages=_messages(taken),
            start=start,
            next=self._position,
            eof=self._lines.is_at_end,
            # A file that was cut meanwhile had at least what was read of it.
            file_size=max(self._file.size, self._position),
            revision=self._revision,
        )

    def goes_on(self, messages: int) -> bool:
        """Whether a line is left that has at most ``messages``."""
        return _goes_on(self._lines, messages)


class BackwardPages:
    """Pages before an offset to the start of the file; the messages of each stand in order."""

    __slots__ = ("_file", "_is_at_end", "_lines", "_position", "_revision")

    def __init__(self, parser: Parser, revision: str, offset: int | None) -> None:
        """Begin before ``offset``, or where it leads; None is the end."""
        self._file = parser.file
        self._is_at_end = offset is None or offset >= self._file.size
        self._revision = revision
        self._position = place_backward(parser.file, self._file.size if offset is None else offset)
        self._lines = BackwardLines(parser, self._position)

    def page(self, extent: Extent) -> Page:
        """Return the page before."""
        end, eof = self._position, self._is_at_end
        taken = _take(self._lines, extent)
        taken.reverse()
        self._position = taken[0].offset if taken else end
        self._is_at_end = False
        return Page(
            messages=_messages(taken),
            start=_first_message_line(taken, self._position),
            next=end,
            eof=eof,
            file_size=max(self._file.size, end),
            revision=self._revision,
        )

    def goes_on(self, messages: int) -> bool:
        """Whether a line is left that has at most ``messages``."""
        return _goes_on(self._lines, messages)


def _take(lines: OnwardLines | BackwardLines, extent: Extent) -> list[ReadLine]:
    """Take whole lines while they fit, at least one if there is one."""
    taken: list[ReadLine] = []
    messages, text_bytes = extent.messages, extent.text_bytes
    allow = ANY_LENGTH
    while (line := lines.take(allow)) is not None:
        messages -= len(line.messages)
        text_bytes -= line.text_bytes
        if taken and (messages < 0 or text_bytes < 0):
            lines.unread(line)
            break
        if not taken:
            allow = extent.file_bytes
        allow = max(0, allow - line.size)
        taken.append(line)
    return taken


def _goes_on(lines: OnwardLines | BackwardLines, messages: int) -> bool:
    line = lines.take(ANY_LENGTH)
    if line is None:
        return False
    lines.unread(line)
    return len(line.messages) <= messages


def _messages(lines: Iterable[ReadLine]) -> tuple[Message, ...]:
    return tuple(message for line in lines for message in line.messages)


def _first_message_line(lines: Iterable[ReadLine], otherwise: int) -> int:
    return next((line.offset for line in lines if line.messages), otherwise)
