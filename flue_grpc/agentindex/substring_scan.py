"""Looking for a literal text in one open transcript (behaviour B7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flue_grpc import limits
from flue_grpc.agentindex.escapes import UNKNOWN, KnownEscapes
from flue_grpc.agentindex.matchers import matcher_for
from flue_grpc.agentindex.prefilter import derive
from flue_grpc.agentindex.scanner import Scanned, candidate_lines
from flue_grpc.agentindex.transcript_file import TranscriptFile
from flue_grpc.agentindex.values import Hit
from flue_grpc.text.casefold import fold_text
from flue_grpc.text.query import parse_literal
from flue_grpc.text.snippets import literal_snippet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flue_grpc.agentindex.adapters.base import Adapter, Context
    from flue_grpc.agentindex.hit_filter import HitFilter
    from flue_grpc.agentindex.lines import Line
    from flue_grpc.agentindex.opening import OpenTranscript
    from flue_grpc.agentindex.records import FileKey
    from flue_grpc.agentindex.values import Message, Summary
    from flue_grpc.cancel import Cancel
    from flue_grpc.text.snippets import Snippet


@dataclass(frozen=True, slots=True)
class Target:
    """A session's transcript, and what reading its messages takes.

    ``context`` tells its mirror, which messages depend on; no hit shows a model.
    ``escapes`` is what the index knows of the bytes of the file that ``key`` tells.
    ``snippet`` is the context of a hit in code points on each side.
    """

    summary: Summary
    path: str
    root: str
    adapter: Adapter[Any]
    context: Context
    escapes: KnownEscapes = UNKNOWN
    snippet: int = limits.SNIPPET_CODE_POINTS
    key: FileKey | None = None

    def known_of(self, opened: OpenTranscript) -> KnownEscapes:
        """Return what is known of an open file: nothing if it changed since the sweep."""
        key = self.key
        if key is None or (key.size, key.mtime_ns) != (opened.size, opened.mtime_ns):
            return UNKNOWN
        return self.escapes if key.inode == opened.inode else UNKNOWN


class Needle:
    """What is looked for: a folded text, and where it can be in bytes."""

    __slots__ = ("_folded", "_matcher", "_prefilter", "_wanted")

    def __init__(self, query: str, wanted: HitFilter) -> None:
        """Trim and fold ``query``.

        Raises as ``parse_literal`` does.
        """
        self._folded = fold_text(parse_literal(query))
        self._prefilter = derive(self._folded)
        self._matcher = matcher_for(self._prefilter)
        self._wanted = wanted

    def look(
        self, opened: OpenTranscript, target: Target, start: int, index: int, cancel: Cancel
    ) -> Iterator[Hit | Scanned]:
        """Yield hits from message ``index`` of the line at ``start``, and how far it is.

        Raises as ``TranscriptFile``.
        """
        file, known = TranscriptFile(opened, cancel), target.known_of(opened)
        for step in candidate_lines(file, start, self._matcher, known):
            if isinstance(step, Scanned):
                yield step
                continue
            cancel.check()
            if self._prefilter.admits(step.data):
                yield from self._hits(step, target, index if step.offset == start else 0)
            yield Scanned(step.end, step.end)

    def _hits(self, line: Line, target: Target, index: int) -> Iterator[Hit]:
        messages, _ = target.adapter.messages(line.data, line.offset, target.context)
        for message in messages[index:]:
            if self._wanted.accepts(message):
                snippet = literal_snippet(message.text, self._folded, target.snippet)
                if snippet is not None:
                    yield _hit(target.summary, message, snippet)


def _hit(summary: Summary, message: Message, snippet: Snippet) -> Hit:
    return Hit(
        tool=summary.tool,
        id=summary.id,
        cwd=summary.cwd,
        title=summary.title,
        ts=message.ts,
        role=message.role,
        kind=message.kind,
        snippet=snippet.text,
        offset=message.offset,
        index=message.index,
        text_offset=snippet.text_offset,
        ranges=snippet.ranges,
    )
