"""A transcript found in the index: all that is needed to open and read it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from flue_grpc.agentindex.adapters.base import Context
from flue_grpc.agentindex.settings import ReadLimits

if TYPE_CHECKING:
    from flue_grpc.agentindex.adapters.base import Adapter
    from flue_grpc.agentindex.values import Summary


class Checkpoints(msgspec.Struct, frozen=True):
    """What the parser knew at some offsets of one file (behaviour B6).

    ``contexts[i]`` holds from ``offsets[i]`` on; the first offset is 0, and ``mirror``
    is that of the newest state in all of them. Up to
    ``exact_until`` each change is recorded; from there to ``end``, where the
    index stopped reading, changes may lie between two checkpoints.
    """

    offsets: tuple[int, ...]
    contexts: tuple[Context, ...]
    exact_until: int
    end: int

    def at(self, offset: int) -> tuple[int, Context]:
        """Return (position, context): what is known at ``position`` ≤ ``offset``.

        The lines from ``position`` to ``offset``, if any, may still change it.
        """
        nearest = bisect_right(self.offsets, offset) - 1
        known_until = min(offset, self.exact_until)
        return max(self.offsets[nearest], known_until), self.contexts[nearest]


def no_checkpoints(mirror: bool) -> Checkpoints:  # noqa: FBT001 - a fact, no switch
    """Return those of a file of which nothing but ``Context.mirror`` is known."""
    return Checkpoints((0,), (Context(mirror=mirror),), 0, 0)


@dataclass(frozen=True, slots=True)
class Located:
    """One transcript's place and what the index knows of it.

    ``path`` and ``root`` are absolute and free of symbolic links; neither ever
    crosses the wire. Open with ``opening.open_transcript(path, root)``; a file that
    has another revision than ``summary`` was replaced, and its checkpoints are void.
    """

    tool: str
    id: str
    path: str
    root: str
    adapter: Adapter[Any]
    summary: Summary
    checkpoints: Checkpoints
    limits: ReadLimits = field(default_factory=ReadLimits)

    def context_at(self, offset: int) -> tuple[int, Context]:
        """Return (position, context) for reading on from ``offset``, as in ``Checkpoints.at``."""
        return self.checkpoints.at(offset)
