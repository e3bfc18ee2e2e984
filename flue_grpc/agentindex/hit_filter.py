"""Which messages a search may find, whatever its mode (contract "Search")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flue_grpc.agentindex.values import Kind, Message, Role, Summary


@dataclass(frozen=True, slots=True)
class HitFilter:
    """What is empty or None filters nothing; subagents are hidden unless asked for.

    ``tools`` are names, one that no adapter has matches nothing. ``cwd`` is compared as
    a whole. A message is inside when ``since`` ≤ ts < ``until``, in microseconds; one
    without a time is left out when either is set.
    """

    tools: tuple[str, ...] = ()
    cwd: str = ""
    roles: tuple[Role, ...] = ()
    kinds: tuple[Kind, ...] = ()
    since: int | None = None
    until: int | None = None
    include_subagents: bool = False

    def accepts_session(self, summary: Summary) -> bool:
        """Judge a session by its own fields; its messages may be of any time."""
        if summary.is_subagent and not self.include_subagents:
            return False
        if self.tools and summary.tool not in self.tools:
            return False
        return not self.cwd or summary.cwd == self.cwd

    def accepts(self, message: Message) -> bool:
        """Judge one message of an accepted session."""
        if self.roles and message.role not in self.roles:
            return False
        if self.kinds and message.kind not in self.kinds:
            return False
        if self.since is None and self.until is None:
            return True
        if message.ts is None or (self.since is not None and message.ts < self.since):
            return False
        return self.until is None or message.ts < self.until
