"""Sessions named by their id, ``TOOL:ID``, or an unambiguous beginning of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flue_grpc.commands.output import complain
from flue_grpc.render.safe import for_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flue.agentindex.v1 import agent_index_pb2 as pb
    from flue_grpc.client import Client

_SHOWN: Final = 10


def find(client: Client, name: str) -> pb.Summary | None:
    """Find the session that ``name`` stands for; complains when it is not just one."""
    found = list(_candidates(client, name))
    if len(found) == 1:
        return found[0]
    if not found:
        complain(f"no session begins with {name!r}; `flue-grpc sessions` lists them")
        return None
    complain(f"{name!r} is the beginning of {len(found)} sessions:")
    for summary in found[:_SHOWN]:
        complain(f"  {summary.tool}:{summary.id}  {for_line(summary.title)}")
    return None


def _candidates(client: Client, name: str) -> Iterator[pb.Summary]:
    tool, separator, beginning = name.partition(":")
    if not separator:
        tool, beginning = "", name
    matching = [s for s in _listed(client, tool) if s.id.startswith(beginning)]
    whole = [s for s in matching if s.id == beginning]
    # The id of a subagent often begins with that of its session.
    topmost = [s for s in matching if not s.parent_id]
    yield from whole or topmost or matching


def _listed(client: Client, tool: str) -> Iterator[pb.Summary]:
    from flue_grpc.client import Filter

    filters = Filter(tools=(tool,) if tool else ())
    yield from client.agentindex.snapshot(filters, include_subagents=True)
