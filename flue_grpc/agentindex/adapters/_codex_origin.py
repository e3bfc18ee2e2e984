"""Where a Codex thread comes from, and which of its lines it inherited (formats §3.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.agentindex.adapters._json_values import members_of, text_of, time_of
from flue_grpc.agentindex.adapters._names import directory_of, is_id, label_of, title_of

if TYPE_CHECKING:
    from flue_grpc.agentindex.adapters._codex_pieces import Line, Payload

_OPENING, _INHERITED, _OWN = range(3)
# The copies of a parent's lines are written in one go.
_COPY_MICROSECONDS: Final = 2_000_000


class Origin(msgspec.Struct):
    """What the thread's own meta line says, and how far the inherited lines reach.

    Copies of the parent's lines, with its meta line first, stand before the first own
    line. What comes after that line is own, whatever it looks like.
    """

    has_meta: bool = False
    id: str = ""
    written_at: int | None = None
    cwd: str = ""
    git_branch: str = ""
    tool_version: str = ""
    is_fork: bool = False
    is_subagent: bool = False
    parent_id: str = ""
    agent_name: str = ""
    start_ordinal: int = 0
    phase: int = _OPENING
    is_past_copies: bool = False
    parent_written_at: int | None = None

    def take_meta(self, meta: Payload, ts: int | None) -> None:
        """Take in a meta line: the first is the thread's own, others are of ancestors."""
        thread_id = label_of(meta.id or "")
        if not self.has_meta:
            self._take_own(meta, ts)
        elif thread_id and thread_id != self.id:
            self._take_foreign(ts)
            return
        if meta.git and meta.git.branch:
            self.git_branch = label_of(meta.git.branch)
        self.tool_version = label_of(meta.cli_version or "") or self.tool_version

    def inherits(self, line: Line) -> bool:
        """Say whether a line that is no meta line is a copy from the parent."""
        if self.start_ordinal and line.ordinal is not None:
            return line.ordinal < self.start_ordinal
        if self.phase == _INHERITED and self._is_copy(time_of(line.timestamp)):
            return True
        self.phase = _OWN
        self.is_past_copies = not self.start_ordinal
        return False

    def _is_copy(self, ts: int | None) -> bool:
        if ts is None:
            return False
        if self.written_at is not None and ts < self.written_at:
            return True
        written_at = self.parent_written_at
        return written_at is not None and ts <= written_at + _COPY_MICROSECONDS

    def _take_foreign(self, ts: int | None) -> None:
        if self.phase != _OWN:
            self.phase = _INHERITED
            self.parent_written_at = ts
            self.is_fork = True

    def _take_own(self, meta: Payload, ts: int | None) -> None:
        self.has_meta = True
        self.id = label_of(meta.id or "") or self.id
        self.written_at = ts
        self.cwd = directory_of(meta.cwd or "")
        self.start_ordinal = meta.subagent_history_start_ordinal or 0
        spawn = self._take_source(meta)
        parent = meta.parent_thread_id or text_of(spawn.get("parent_thread_id", _NONE))
        forked_from = meta.forked_from_id or ""
        self.is_fork = bool(
            self.is_subagent
            or parent
            or forked_from
            or self.start_ordinal
            or len(memoryview(meta.history_base)) > len("null")
        )
        if self.is_subagent:
            parent = parent or forked_from
            self.parent_id = parent if is_id(parent) else ""
            path = meta.agent_path or text_of(spawn.get("agent_path", _NONE))
            nickname = meta.agent_nickname or text_of(spawn.get("agent_nickname", _NONE))
            self.agent_name = title_of(path.rstrip("/").rpartition("/")[2]) or title_of(nickname)

    def _take_source(self, meta: Payload) -> dict[str, msgspec.Raw]:
        """Note whether the thread is a subagent; return what is told of its start."""
        source = members_of(meta.source, ("subagent",)) or {}
        subagent = source.get("subagent", _NONE)
        self.is_subagent = meta.thread_source == "subagent" or bytes(subagent) not in _NO_SUBAGENT
        spawn = (members_of(subagent, ("thread_spawn",)) or {}).get("thread_spawn", _NONE)
        return members_of(spawn, _SPAWN_MEMBERS) or {}


_SPAWN_MEMBERS: Final = ("parent_thread_id", "agent_path", "agent_nickname")
_NONE: Final = msgspec.Raw(b"null")
_NO_SUBAGENT: Final = frozenset({b"null", b"false", b'""'})
