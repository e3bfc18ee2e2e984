"""Messages of a transcript for a terminal: prose as Markdown, tool calls folded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from rich.padding import Padding
from rich.text import Text

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue_grpc.render.amounts import moment, size
from flue_grpc.render.plain import kind_name, role_name
from flue_grpc.render.prose import Prose
from flue_grpc.render.safe import for_line, for_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

_FOLDED_WIDTH: Final = 160
_MARKDOWN_BYTES: Final = 32 * 1024  # larger prose takes too long to lay out

_ROLES: Final = {
    pb.ROLE_USER: ("user", "bold cyan"),
    pb.ROLE_ASSISTANT: ("assistant", "bold green"),
    pb.ROLE_SYSTEM: ("system", "bold yellow"),
}


class Folds(msgspec.Struct, frozen=True):
    """What is shown whole instead of on one line."""

    tools: bool = False
    thinking: bool = False
    system: bool = False


FOLDED: Final = Folds()
OPEN: Final = Folds(tools=True, thinking=True, system=True)


def render(message: pb.Message, folds: Folds) -> Iterator[RenderableType]:
    """Yield what shows one message."""
    if message.kind == pb.KIND_TOOL_CALL:
        yield from _tool(message, "▸ " + _tool_name(message), "magenta", is_open=folds.tools)
    elif message.kind == pb.KIND_TOOL_RESULT:
        style = "red" if message.is_error else "dim"
        label = "  └ error" if message.is_error else "  └"
        yield from _tool(message, label, style, is_open=folds.tools)
    elif message.kind == pb.KIND_THINKING:
        yield from _tool(message, "… thinking", "italic dim", is_open=folds.thinking)
    elif message.role == pb.ROLE_SYSTEM:
        yield from _tool(message, "∙ system", "yellow", is_open=folds.system)
    else:
        yield from _prose(message)


def one_line(message: pb.Message) -> str:
    """Show one message as its place and one line, for a pipe."""
    kind = kind_name(message.kind)
    role = role_name(message.role)
    text = for_line(message.text)
    name = f" {for_line(message.tool_name)}" if message.tool_name else ""
    return f"{message.offset}.{message.index}\t{role}\t{kind}{name}\t{text}"


def _prose(message: pb.Message) -> Iterator[RenderableType]:
    role, style = _ROLES.get(message.role, ("?", "bold"))
    head = Text.assemble((role, style))
    if message.sidechain:
        head.append(" subagent", style="dim")
    head.append("  " + moment(message.ts, None), style="dim")
    if message.model:
        head.append("  " + for_line(message.model), style="dim")
    yield Text()
    yield head
    text = for_terminal(message.text)
    if len(text) <= _MARKDOWN_BYTES:
        yield Prose(text)
    else:
        yield Text(text)
    if message.truncated:
        yield _cut(message)


def _tool(
    message: pb.Message, label: str, style: str, *, is_open: bool
) -> Iterator[RenderableType]:
    line = Text(label + " ", style=style)
    if is_open:
        yield line
        yield Padding(Text(for_terminal(message.text)), (0, 0, 0, 4))
        if message.truncated:
            yield _cut(message)
        return
    first = for_line(message.text[:_FOLDED_WIDTH])
    line.append(first, style="dim")
    lines = message.text.count("\n") + 1
    if lines > 1 or message.text_size > _FOLDED_WIDTH:
        line.append(f"  ({lines} lines, {size(message.text_size)})", style="dim italic")
    line.truncate(_FOLDED_WIDTH, overflow="ellipsis")
    yield line


def _tool_name(message: pb.Message) -> str:
    return for_line(message.tool_name) or "tool"


def _cut(message: pb.Message) -> Text:
    return Text(f"[cut: {size(message.text_size)} in all; --whole shows it]", style="dim italic")
