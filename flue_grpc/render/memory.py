"""Memory entries for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from flue_grpc.render.amounts import moment
from flue_grpc.render.safe import for_line, for_terminal

if TYPE_CHECKING:
    from rich.console import RenderableType

    from flue.store.v1 import store_pb2 as pb


def render_entry(entry: pb.MemoryEntry) -> RenderableType:
    """Show one entry: its id, pin, time and scope, and its text below."""
    head = Text(str(entry.id), style="bold cyan")
    if entry.pinned:
        head.append(" ★", style="yellow")
    head.append(f"  {moment(entry.updated_at, None)}  {for_line(entry.scope)}", style="dim")
    return Group(head, Padding(Text(for_terminal(entry.content)), (0, 0, 0, 2)))
