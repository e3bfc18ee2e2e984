"""Reading a transcript: pages onward and back, and single messages (behaviour B6).

Pages tile: those read onward by ``Page.next``, or back by ``Page.start``, leave no gap
and never overlap, whatever their limits. What a page costs does not depend on the size
of the file. A file that changes underneath gives what it has at that moment.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from flue_grpc import limits
from flue_grpc.agentindex.line_readers import OnwardReader
from flue_grpc.agentindex.opening import open_transcript
from flue_grpc.agentindex.page_lines import ANY_LENGTH, Parser
from flue_grpc.agentindex.paging import BackwardPages, Extent, OnwardPages
from flue_grpc.agentindex.transcript_file import TranscriptFile
from flue_grpc.errors import CursorGoneError, MessageNotFoundError, TranscriptNotFoundError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from flue_grpc.agentindex.located import Located
    from flue_grpc.agentindex.opening import OpenTranscript
    from flue_grpc.agentindex.paging import Pages
    from flue_grpc.agentindex.values import Direction, Message, Page
    from flue_grpc.cancel import Cancel


def read_page(  # noqa: PLR0913, PLR0917  (the fields of the request)
    located: Located,
    offset: int | None,
    direction: Direction,
    limit: int,
    revision: str,
    cancel: Cancel,
) -> Page:
    """Return the page that begins, or backward ends, at ``offset``.

    ``offset`` None is the start, or backward the end; one past the end is the end.
    ``limit`` is at least 1 message. Raises CursorGoneError when ``revision`` is given
    and the file is another one or ends before ``offset``, TranscriptNotFoundError when
    it cannot be read.
    """
    with _opened(located, offset, revision) as opened:
        return _pages(located, opened, offset, direction, cancel).page(
            Extent(limit, file_bytes=located.limits.page_file_bytes)
        )


def read_transcript(  # noqa: PLR0913, PLR0917  (the fields of the request)
    located: Located,
    offset: int | None,
    direction: Direction,
    limit: int,
    revision: str,
    cancel: Cancel,
) -> Generator[Page]:
    """Yield consecutive pages, at least one, to the end or backward to the start.

    Stops before the line that would pass ``limit`` messages, 0 for no limit; the first
    line always comes. Pages start small and grow to about 64 KiB (contract rule 1);
    their messages are those of ``read_page``, and so are the errors. What was written
    since comes by reading onward from the last ``next`` with the page's revision: that
    is how to follow a transcript.
    """
    with _opened(located, offset, revision) as opened:
        pages = _pages(located, opened, offset, direction, cancel)
        file_bytes = located.limits.page_file_bytes
        left = limit or ANY_LENGTH
        wanted = limits.BATCH_START_ITEMS
        is_first = True
        while is_first or pages.goes_on(left):
            page = pages.page(Extent(min(wanted, left), limits.BATCH_TARGET_BYTES, file_bytes))
            left -= len(page.messages)
            wanted = min(wanted * 2, limits.BATCH_MAX_ITEMS)
            is_first = False
            yield page


def read_message(
    located: Located, offset: int, index: int, revision: str, cancel: Cancel
) -> Iterator[str]:
    """Return the whole text of message ``index`` of the line at ``offset``, in pieces.

    At least one piece, each at most MESSAGE_PIECE_CODE_POINTS. Raises
    MessageNotFoundError when there is no such message, else as ``read_page``.
    """
    messages = read_line(located, offset, revision, cancel)
    if index >= len(messages):
        raise MessageNotFoundError("the transcript has no message at that offset and index")
    text, step = messages[index].text, limits.MESSAGE_PIECE_CODE_POINTS
    return (text[start : start + step] for start in range(0, max(1, len(text)), step))


def read_line(located: Located, offset: int, revision: str, cancel: Cancel) -> Sequence[Message]:
    """Return the messages of the line that begins at ``offset``, with whole texts.

    Empty where no line begins, or one above LINE_BYTES. Raises as ``read_page``.
    """
    with _opened(located, offset, revision) as opened:
        file = TranscriptFile(opened, cancel)
        if offset > 0 and file.read(offset - 1, 1) != b"\n":
            return ()
        line = OnwardReader(file, offset).next(limits.LINE_BYTES + 1)
        if line is None:
            return ()
        parser = _parser(located, opened, file)
        return parser.messages(line, parser.context_before(offset))[0]


@contextmanager
def _opened(located: Located, offset: int | None, revision: str) -> Iterator[OpenTranscript]:
    with open_transcript(located.path, located.root) as opened:
        try:
            if revision and not (opened.has_revision(revision) and (offset or 0) <= opened.size):
                raise CursorGoneError("the transcript was replaced or cut since")
            yield opened
        except OSError as error:
            raise TranscriptNotFoundError("the transcript cannot be read") from error


def _pages(
    located: Located,
    opened: OpenTranscript,
    offset: int | None,
    direction: Direction,
    cancel: Cancel,
) -> Pages:
    parser = _parser(located, opened, TranscriptFile(opened, cancel))
    if direction == "forward":
        return OnwardPages(parser, opened.revision, offset or 0)
    return BackwardPages(parser, opened.revision, offset)


def _parser(located: Located, opened: OpenTranscript, file: TranscriptFile) -> Parser:
    return Parser(located, file, is_indexed=opened.has_revision(located.summary.revision))
