"""The console of rich, on which nothing but rich's own colours acts."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from rich.console import Console, RenderHook
from rich.segment import Segment

from flue_grpc.render.safe import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import ConsoleOptions, ConsoleRenderable, RenderableType

_AnyConsole = TypeVar("_AnyConsole", bound=Console)


def guarded(console: _AnyConsole) -> _AnyConsole:
    """Make a console safe for text of strangers, whatever a renderable makes of it."""
    console.push_render_hook(_Guard())
    return console


class _Guard(RenderHook):
    """Wraps all that is printed."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Guarded(each) for each in renderables]


class _Guarded:
    """Yields the segments of another renderable with every control character visible."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for text, style, control in console.render(self._renderable, options):
            if control:
                yield Segment(text, style, control)
                continue
            # rich writes the address of a link as it is, into a sequence of its own.
            plain = style.update_link() if style is not None and style.link else style
            yield Segment(visible(text), plain)
