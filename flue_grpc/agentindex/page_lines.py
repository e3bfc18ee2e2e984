"""The messages of a transcript line by line, onward or back, as pages take them.

What a line holds never depends on where reading began (behaviour B6): the parser's
context comes from the index's checkpoints, and the few lines behind one are read again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.agentindex.adapters.base import Context
from flue_grpc.agentindex.json_repair import whole_end
from flue_grpc.agentindex.line_readers import BackwardReader, OnwardReader
from flue_grpc.agentindex.page_texts import cut_messages
from flue_grpc.agentindex.values import Message
from flue_grpc.limits import CONTEXT_WALK_BYTES, FIRST_READ_BYTES, PAGE_FILE_BYTES

if TYPE_CHECKING:
    from flue_grpc.agentindex.lines import Line
    from flue_grpc.agentindex.located import Located
    from flue_grpc.agentindex.places import Place
    from flue_grpc.agentindex.transcript_file import TranscriptFile

ANY_LENGTH: Final = 1 << 62


class ReadLine(msgspec.Struct, frozen=True, gc=False):
    """A line, or a part of one, as a page shows it.

    ``end`` is where parsing goes on, ``size`` the bytes of file that it took, and
    ``text_bytes`` the UTF-8 size of all its texts.
    """

    offset: int
    end: int
    size: int
    messages: tuple[Message, ...]
    text_bytes: int


class Parser:
    """Makes messages of the lines of one open transcript."""

    __slots__ = ("_adapter", "_checkpoints", "file", "limits")

    def __init__(self, located: Located, file: TranscriptFile, *, is_indexed: bool) -> None:
        """``is_indexed``: the index knows this very file, not one that it replaced."""
        self.file = file
        self.limits = located.limits
        self._adapter = located.adapter
        self._checkpoints = located.checkpoints if is_indexed else None

    @property
    def most_hollow(self) -> int:
        """The bytes of hollow lines that may count as one line: a page stays in its bounds."""
        return min(FIRST_READ_BYTES, self.limits.page_file_bytes)

    def context_before(self, offset: int) -> Context:
        """Return the context of the line that begins at ``offset``."""
        position, context = self._checkpoints.at(offset) if self._checkpoints else (0, Context())
        if offset - position > CONTEXT_WALK_BYTES:
            return context
        reader = OnwardReader(self.file, position)
        while reader.position < offset and (line := reader.next(ANY_LENGTH)):
            context = self.messages(line, context)[1]
        return context

    def messages(self, line: Line, context: Context) -> tuple[list[Message], Context]:
        """Return the messages of the line's whole objects, and the context behind it.

        Raises what ``cancel`` raises.
        """
        self.file.check()
        return self._adapter.messages(line.data, line.offset, context)


class OnwardLines:
    """Lines from a place to the end, in the order of the file."""

    __slots__ = ("_context", "_held", "_is_tail_read", "_parser", "_position", "_reader")

    def __init__(self, parser: Parser, place: Place) -> None:
        """Begin at ``place``."""
        self._parser = parser
        self._reader = OnwardReader(parser.file, place.line_start, parser.most_hollow)
        self._position = place.position
        self._context: Context | None = None
        self._held: ReadLine | None = None
        self._is_tail_read = False

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left but, at most, a fragment of a line."""
        return self._held is None and (self._is_tail_read or self._reader.is_at_end)

    def take(self, allow: int) -> ReadLine | None:
        """Return the next line; None when none is left or it has more than ``allow`` bytes."""
        if self._held is not None:
            return self._release(allow)
        if self._is_tail_read:
            return None
        start = self._reader.position
        skipped = max(0, self._position - start)
        line = self._reader.next(allow + skipped)
        if line is None:
            return None
        if line.terminated:
            return self._read(line, line.end, skipped)
        self._is_tail_read = True
        end = line.offset + whole_end(line.data)
        return self._read(line, end, skipped) if end > start + skipped else None

    def unread(self, line: ReadLine) -> None:
        """Put back the line that was taken last."""
        self._held = line

    def _release(self, allow: int) -> ReadLine | None:
        held = self._held
        if held is None or held.size > allow:
            return None
        self._held = None
        return held

    def _read(self, line: Line, end: int, skipped: int) -> ReadLine:
        context = self._context
        if context is None:
            context = self._parser.context_before(line.offset)
        messages, self._context = self._parser.messages(line, context)
        if skipped:
            head = msgspec.structs.replace(line, data=line.data[:skipped])
            messages = messages[len(self._parser.messages(head, context)[0]) :]
        shown, text_bytes = cut_messages(messages, self._parser.limits.message_text_bytes)
        self._position = end
        return ReadLine(line.offset, end, end - line.offset - skipped, shown, text_bytes)


class BackwardLines:
    """Lines before a position, the last one first."""

    __slots__ = ("_lines", "_parser", "_reader", "_wanted")

    def __init__(self, parser: Parser, position: int) -> None:
        """Begin before ``position``, a line's start or the end of a whole object."""
        self._parser = parser
        self._reader = BackwardReader(parser.file, position, parser.most_hollow)
        self._lines: list[ReadLine] = []
        self._wanted = FIRST_READ_BYTES

    @property
    def is_at_start(self) -> bool:
        """Whether nothing is left."""
        return not self._lines and self._reader.is_at_start

    def take(self, allow: int) -> ReadLine | None:
        """Return the line before; None when none is left or it has more than ``allow`` bytes."""
        if not self._lines:
            self._read_some(allow)
        if not self._lines or self._lines[-1].size > allow:
            return None
        return self._lines.pop()

    def unread(self, line: ReadLine) -> None:
        """Put back the line that was taken last."""
        self._lines.append(line)

    def _read_some(self, allow: int) -> None:
        """Read lines back until they are many bytes, then parse them in order."""
        lines: list[Line] = []
        reader, top = self._reader, self._reader.position
        while top - reader.position < min(self._wanted, allow):
            # Only the first may be of any length: the others may never be asked for.
            most = min(allow, PAGE_FILE_BYTES) - (top - reader.position) if lines else allow
            line = reader.next(most)
            if line is None:
                break
            lines.append(line)
        if not lines:
            return
        self._wanted = min(self._wanted * 2, PAGE_FILE_BYTES)
        context = self._parser.context_before(lines[-1].offset)
        for line in reversed(lines):
            messages, context = self._parser.messages(line, context)
            shown, text_bytes = cut_messages(messages, self._parser.limits.message_text_bytes)
            size = line.end - line.offset
            self._lines.append(ReadLine(line.offset, line.end, size, shown, text_bytes))
