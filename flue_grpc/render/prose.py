"""Prose of a transcript, laid out as Markdown with nothing left out of it.

Markdown has places that no reader sees: comments, definitions, the titles of links,
cells too many. What a message says is all shown, and what does not survive the
layout is shown as it was written.
"""

from __future__ import annotations

from collections import Counter
from itertools import dropwhile, pairwise
from typing import TYPE_CHECKING, ClassVar, Final

from markdown_it import MarkdownIt
from markdown_it.common.utils import unescapeAll
from rich.markdown import CodeBlock, Markdown
from rich.segment import Segment
from rich.text import Text

from flue_grpc.render.safe import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it.token import Token
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import MarkdownElement

_ALSO: Final = ("strikethrough", "table")
# A definition vanishes, and an image is its address.
_NOT: Final = ("reference", "image")


class Prose:
    """Lays out text that ``for_terminal`` has made safe."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._blocks = tuple(_blocks(_parser().parse(text)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield block by block, an empty line between two."""
        if not self._blocks:
            yield Text(self._text.strip("\n"))
            return
        starts = [_first_line(block) for block in self._blocks]
        source = self._text.split("\n")
        layout = _Layout("", hyperlinks=False, code_theme="ansi_dark")
        # What stands before the first block or after the last belongs to it.
        places = pairwise([0, *starts[1:], len(source)])
        for number, (block, (start, end)) in enumerate(zip(self._blocks, places, strict=False)):
            if number:
                yield Segment.line()
            layout.parsed = block
            yield from _whole(layout, "\n".join(source[start:end]).strip("\n"), console, options)


def _parser() -> MarkdownIt:
    parser = _AsWritten("commonmark", {"html": False})
    return parser.enable(_ALSO).disable(_NOT)


class _AsWritten(MarkdownIt):
    """Leaves the addresses of links as they were written."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802 - markdown-it's name
        """Encode nothing."""
        return url

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802 - markdown-it's name
        """Decode nothing: an encoded character may act on a terminal."""
        return link


class _Fence(CodeBlock):
    """A block of code below what its fence says."""

    info = ""

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> _Fence:
        """Keep all words of the fence; the first alone names a language."""
        language, *_ = token.info.split() or ["text"]
        fence = cls(language, markdown.code_theme)
        fence.info = token.info.strip()
        return fence

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the line, then the code."""
        if self.info:
            yield Text(self.info, style="dim")
        yield from super().__rich_console__(console, options)


class _Layout(Markdown):
    """Markdown whose fences show what they say."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "fence": _Fence}


def _blocks(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each outermost block, made safe: entities are decoded by now."""
    block: list[Token] = []
    for token in tokens:
        _clean(token)
        block.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield block
            block = []


def _clean(token: Token) -> None:
    token.content = visible(token.content)
    token.info = visible(token.info)
    title = token.attrs.pop("title", "")
    href = token.attrs.get("href", "")
    if href:
        token.attrs["href"] = visible(f'{href} "{title}"' if title else str(href))
    if token.children:
        # The text of such a link is its address.
        token.children = [child for child in token.children if child.markup != "autolink"]
        for child in token.children:
            _clean(child)


def _first_line(block: Sequence[Token]) -> int:
    return block[0].map[0] if block[0].map else 0


def _whole(
    layout: Markdown, source: str, console: Console, options: ConsoleOptions
) -> Iterator[Segment]:
    """Yield the lines of a layout, or of its source when letters or digits of that are missing."""
    lines = console.render_lines(layout, options, pad=False)
    if _letters(unescapeAll(source)) - _letters(_texts(lines)):
        lines = console.render_lines(Text(source), options, pad=False)
    while lines and _is_empty(lines[-1]):
        lines.pop()
    # rich separates blocks, and sometimes the first from nothing.
    for line in dropwhile(_is_empty, lines):
        yield from line
        yield Segment.line()


def _is_empty(line: Sequence[Segment]) -> bool:
    return not any(segment.text for segment in line)


def _texts(lines: Iterable[Iterable[Segment]]) -> str:
    return "".join(segment.text for line in lines for segment in line)


def _letters(text: str) -> Counter[str]:
    return Counter(filter(str.isalnum, text))
