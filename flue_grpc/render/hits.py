"""Hits of a search for a terminal, with what matches highlighted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.text import Text

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue_grpc.render.amounts import moment
from flue_grpc.render.plain import kind_name, role_name
from flue_grpc.render.safe import for_line
from flue_grpc.render.tables import TOOL_STYLES

if TYPE_CHECKING:
    from rich.console import RenderableType

_MATCH: Final = "bold black on yellow"


def render_hit(hit: pb.Hit, *, with_head: bool) -> RenderableType:
    """Show one hit; its session's head too, when it is not that of the hit before."""
    line = Text("  ")
    line.append(moment(hit.ts, None) + " ", style="dim")
    line.append(_who(hit) + " ", style="cyan")
    line.append_text(highlight(hit))
    line.append(f"  @{hit.offset}", style="dim")
    if not with_head:
        return line
    head = Text(for_line(hit.tool), style=TOOL_STYLES.get(hit.tool, "cyan"))
    head.append(f" {for_line(hit.id)} ", style="bold")
    head.append(for_line(hit.title))
    return Group(Text(), head, line)


def highlight(hit: pb.Hit) -> Text:
    """Mark the ranges, which are bytes of the snippet; the parts are made safe one by one."""
    snippet = hit.snippet.encode()
    text, start = Text(), 0
    for part in hit.ranges:
        text.append(_clean(snippet[start : part.start]))
        text.append(_clean(snippet[part.start : part.end]), style=_MATCH)
        start = part.end
    text.append(_clean(snippet[start:]))
    return text


def _clean(part: bytes) -> str:
    """Make a part safe without trimming the space next to a match."""
    text = part.decode("utf-8", "replace")
    before = " " if text[:1].isspace() else ""
    after = " " if text[-1:].isspace() and len(text) > 1 else ""
    return f"{before}{for_line(text)}{after}"


def _who(hit: pb.Hit) -> str:
    if hit.kind in {pb.KIND_TOOL_CALL, pb.KIND_TOOL_RESULT, pb.KIND_THINKING}:
        return kind_name(hit.kind)
    return role_name(hit.role)
