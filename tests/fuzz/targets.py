"""What is fuzzed: each target takes bytes and raises when a law is broken.

The first bytes choose among variants, the rest is what a hostile or damaged source says.
"""

from __future__ import annotations

import atexit
import base64
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

from flue.store.v1 import store_pb2
from flue_grpc.agentindex import pages
from flue_grpc.agentindex.json_repair import is_object, whole_end, whole_objects
from flue_grpc.agentindex.lines import read_lines, split_lines
from flue_grpc.agentindex.located import no_checkpoints
from flue_grpc.cancel import NEVER
from flue_grpc.errors import FlueError
from flue_grpc.rpc.page_token import VERSION, PageTokens
from flue_grpc.store.messages import MessageCursor
from flue_grpc.store.ranked import SearchCursor
from flue_grpc.store.sessions import SessionCursor
from flue_grpc.text.casefold import fold_text
from flue_grpc.text.match import verifier
from flue_grpc.text.query import parse_literal, parse_plain, parse_ranked
from flue_grpc.text.snippets import literal_snippet, opening_snippet, ranked_snippet
from tests.fuzz.wire import Wire
from tests.unit.agentindex.notes import located
from tests.unit.agentindex.reading import ADAPTERS, Reading
from tests.unit.text.fts import Index

TOOLS = sorted(ADAPTERS)
TOKEN_KINDS = (MessageCursor, SearchCursor, SessionCursor)


def adapters(data: bytes) -> None:
    """A transcript obeys the laws, read at once or in two steps with a restart between."""
    if len(data) < 2:
        return
    tool, cut, body = TOOLS[data[0] % len(TOOLS)], data[1], data[2:]
    whole, steps = Reading(tool), Reading(tool)
    whole.feed(body)
    end = body.rfind(b"\n", 0, len(body) * cut // 255) + 1
    steps.feed(body[:end])
    steps.store()
    steps.feed(body[end:])
    assert steps.summary == whole.summary
    assert steps.usage == whole.usage
    whole.check_laws()
    for message in whole.messages:
        assert "\0" not in message.text
        assert message.text_size == len(message.text.encode())


def lines(data: bytes) -> None:
    """Lines are the bytes between newlines; what is repaired is whole JSON."""
    cap = data[0] if data else 0
    found = list(split_lines(data, 7, cap))
    pieces = data.split(b"\n")
    expected = pieces if pieces[-1] else pieces[:-1]
    assert [line.data for line in found] == [p if len(p) <= cap else b"" for p in expected]
    assert [line.offset for line in found[1:]] == [line.end for line in found[:-1]]
    with _file(data) as (descriptor, _):
        assert [(line.data, line.end) for line in read_lines(descriptor, 0, len(data), cap)] == [
            (line.data, line.end - 7) for line in found
        ]
    for piece in expected:
        assert all(map(is_object, whole_objects(piece)))
        assert 0 <= whole_end(piece) <= len(piece)
        assert whole_end(piece[: whole_end(piece)]) == whole_end(piece)


def page_reader(data: bytes) -> None:
    """Pages of any size, forward and backward, put together are the whole transcript."""
    if len(data) < 4:
        return
    tool, limit, offset, body = TOOLS[data[0] % 3], data[1] % 7 + 1, data[2] * 3, data[3:]
    with _file(body) as (_, path):
        found = located(path, _no_checkpoints(tool, body), ADAPTERS[tool])
        whole = _messages(pages.read_transcript(found, 0, "forward", 0, "", NEVER))
        assert whole == _walk(found, limit, "forward")
        assert whole == _walk(found, limit, "backward")
        for direction in ("forward", "backward"):
            page = pages.read_page(found, offset, direction, limit, "", NEVER)
            assert 0 <= page.start <= page.next <= len(body)
            assert all(page.start <= m.offset < page.next for m in page.messages)
        with suppress(FlueError):
            list(pages.read_message(found, offset, limit - 1, "", NEVER))


def queries(data: bytes) -> None:
    """A query is refused in words, or finds with FTS5 what it finds without."""
    text, _, query = data.decode("utf-8", "replace").partition("\x1f")
    for parse in (parse_plain, parse_ranked):
        with suppress(FlueError):
            parsed = parse(query)
            accepted = not parsed.matches_nothing and verifier(parsed).accepts(text)
            assert Index([text]).find(parsed) == ([0] if accepted else [])
            shown = ranked_snippet(text, parsed) if not parsed.matches_nothing else None
            _check_snippet(shown)
    with suppress(FlueError):
        _check_snippet(literal_snippet(text, fold_text(parse_literal(query))))
    _check_snippet(opening_snippet(text))


def tokens(data: bytes) -> None:
    """A token is ours or refused; one that is taken holds what SQLite and lists can take."""
    codec = PageTokens(store_pb2.ListMessagesRequest(session_id="s"))
    for kind in TOKEN_KINDS:
        forged = VERSION + codec._checksum(kind, data) + data
        for text in (data.decode("latin-1"), _spelled(forged)):
            with suppress(FlueError):
                cursor = codec.decode(text, kind)
                assert codec.decode(codec.encode(cursor), kind) == cursor
                for value in msgspec.structs.astuple(cursor) if cursor else ():
                    assert not isinstance(value, int) or -(2**63) <= value < 2**63


def requests(data: bytes) -> None:
    """Any bytes as a request or page token of any RPC: an answer or an error of the contract."""
    if len(data) < 2:
        return
    if data[0] & 1:
        wire().send(data[0] >> 1, data[1:])
    else:
        wire().send_forged(data[0] >> 1, data[1], data[2:])


TARGETS = {
    "adapters": adapters,
    "lines": lines,
    "pages": page_reader,
    "queries": queries,
    "tokens": tokens,
    "requests": requests,
}


@cache
def wire() -> Wire:
    """Return the server that all requests of this process go to."""
    return Wire()


@cache
def _directory() -> Path:
    made = Path(tempfile.mkdtemp(prefix="flue-fuzz"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


class _file:  # noqa: N801 - used as a function
    """A file with these bytes: its descriptor and its path."""

    def __init__(self, data: bytes) -> None:
        self._path = _directory() / "transcript.jsonl"
        self._path.write_bytes(data)

    def __enter__(self):
        self._descriptor = os.open(self._path, os.O_RDONLY)
        return self._descriptor, self._path

    def __exit__(self, *_):
        os.close(self._descriptor)


def _spelled(token):
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def _no_checkpoints(tool, body):
    reading = Reading(tool)
    reading.feed(body)
    return no_checkpoints(reading.adapter.context(reading.state).mirror)


def _walk(found, limit, direction):
    offset, gathered = 0 if direction == "forward" else None, []
    while True:
        page = pages.read_page(found, offset, direction, limit, "", NEVER)
        if direction == "forward":
            gathered += page.messages
            if page.eof or page.next == offset:
                return gathered
            offset = page.next
        else:
            gathered = [*page.messages, *gathered]
            if page.start in {0, offset}:
                return gathered
            offset = page.start


def _messages(all_pages):
    return [message for page in all_pages for message in page.messages]


def _check_snippet(snippet):
    if snippet is None:
        return
    encoded = snippet.text.encode()
    end = 0
    for start, stop in snippet.ranges:
        assert end <= start < stop <= len(encoded)
        encoded[start:stop].decode()
        end = stop
    assert not any(c < " " for c in snippet.text)
