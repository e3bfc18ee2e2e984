"""What a Claude Code session is called (formats §2.7)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final
from zlib import crc32

import msgspec

from flue_grpc.agentindex.adapters._json_values import is_prose
from flue_grpc.agentindex.adapters._names import title_of
from flue_grpc.limits import PENDING_SUMMARIES, REMEMBERED_UUIDS

if TYPE_CHECKING:
    from flue_grpc.agentindex.adapters._claude_pieces import Line

_MARK_BYTES: Final = 4
_MARK: Final = "<I"
FRESH_MARKS: Final = 128  # packed together, which is cheaper than one by one


class Titles(msgspec.Struct):
    """The newest title of each kind.

    A ``summary`` may tell of another session, so one about a uuid of this file is better
    than the first. Marks stand for uuids: ``marks`` holds those of the newest lines in 4
    bytes each, ``fresh`` the very newest, ``pending`` the summaries whose uuid may still
    come, by their number and title. All are only kept until there is a title that no
    summary can outdo.
    """

    custom: str = ""
    agent: str = ""
    ai: str = ""
    first_summary: str = ""
    own_summary: str = ""
    own_number: int = 0
    summaries: int = 0
    pending: dict[int, tuple[int, str]] = {}
    fresh: list[int] = []
    marks: bytes = b""
    is_settled: bool = False

    @property
    def title(self) -> str:
        """The session's title, empty if only its prompt can give one."""
        named = self.custom or self.agent or self.ai
        return named or self._own_summary() or self.first_summary

    def take(self, line: Line) -> None:
        """Take in a line of one of the title types."""
        if line.type == "summary":
            self._take_summary(title_of(line.summary or ""), line.leaf_uuid)
        elif line.type == "custom-title":
            self.rename(line.custom_title or "")
        elif line.type == "agent-name":
            self.agent = title_of(line.agent_name or "") or self.agent
            self._settle()
        elif line.type == "ai-title":
            self.ai = title_of(line.ai_title or "") or self.ai
            self._settle()

    def rename(self, title: str) -> None:
        """Take a name that a person gave; an empty one takes nothing away."""
        self.custom = title_of(title) or self.custom
        self._settle()

    def pack(self) -> None:
        """Pack the fresh marks, and settle which pending summaries they are about."""
        for mark in self.pending.keys() & set(self.fresh):
            self._own(*self.pending.pop(mark))
        packed = self.marks + struct.pack(f"<{len(self.fresh)}I", *self.fresh)
        self.marks = packed[-REMEMBERED_UUIDS * _MARK_BYTES :]
        self.fresh = []

    def _settle(self) -> None:
        if self.custom or self.agent or self.ai:
            self.is_settled = True
            self.pending, self.fresh, self.marks = {}, [], b""

    def _take_summary(self, title: str, leaf: msgspec.Raw) -> None:
        if not title or self.is_settled:
            return
        self.first_summary = self.first_summary or title
        self.summaries += 1
        if not is_prose(leaf):
            return
        mark = crc32(leaf)
        if self._has(mark):
            self._own(self.summaries, title)
        else:
            if len(self.pending) >= PENDING_SUMMARIES:
                self.pack()
            if len(self.pending) >= PENDING_SUMMARIES:
                del self.pending[next(iter(self.pending))]
            self.pending[mark] = (self.summaries, title)

    def _own(self, number: int, title: str) -> None:
        if number > self.own_number:
            self.own_number = number
            self.own_summary = title

    def _own_summary(self) -> str:
        fresh = [self.pending[mark] for mark in self.pending.keys() & set(self.fresh)]
        return max([*fresh, (self.own_number, self.own_summary)])[1]

    def _has(self, mark: int) -> bool:
        return mark in self.fresh or any(
            mark == known for (known,) in struct.iter_unpack(_MARK, self.marks)
        )
