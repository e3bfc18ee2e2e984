"""Which session a subagent belongs to, and what its subagents used (formats §8.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flue_grpc.agentindex.values import TokenUsage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flue_grpc.agentindex.changes import SessionKey
    from flue_grpc.agentindex.values import Summary

_NOTHING = TokenUsage()


class Family:
    """Parents and children among the indexed sessions.

    Parents are what transcripts claim: one that is not indexed counts as none, and
    so does every one in a circle of claims.
    """

    def __init__(self) -> None:
        """Start without sessions."""
        self._members: dict[SessionKey, Summary] = {}
        self._claims: dict[SessionKey, SessionKey] = {}
        self._children: dict[SessionKey, set[SessionKey]] = {}
        self._below: dict[SessionKey, TokenUsage] = {}

    def put(self, key: SessionKey, summary: Summary | None) -> None:
        """Take in, replace or (None) remove a session; ``refresh`` what depends on it."""
        claimed = self._claims.pop(key, None)
        if claimed is not None:
            siblings = self._children[claimed]
            siblings.discard(key)
            if not siblings:
                del self._children[claimed]
        if summary is None:
            self._members.pop(key, None)
            return
        self._members[key] = summary
        if summary.is_subagent and summary.parent_id:
            claim = (key[0], summary.parent_id)
            self._claims[key] = claim
            self._children.setdefault(claim, set()).add(key)

    def lineage(self, key: SessionKey) -> list[SessionKey]:
        """Return the session and all it descends from by its claims, nearest first."""
        line: dict[SessionKey, None] = {}
        at: SessionKey | None = key
        while at is not None and at not in line:
            line[at] = None
            at = self._claims.get(at)
        return list(line)

    def parent(self, key: SessionKey) -> SessionKey | None:
        """Return the indexed session that this one is a subagent of."""
        claim = self._claims.get(key)
        if claim is None or claim not in self._members or key in self.lineage(claim):
            return None
        return claim

    def topmost(self, key: SessionKey) -> SessionKey:
        """Return the last indexed ancestor, the session itself when it has none."""
        at = key
        while (parent := self.parent(at)) is not None:
            at = parent
        return at

    def refresh(self, keys: Iterable[SessionKey]) -> None:
        """Sum up anew what the subagents of these sessions used.

        ``keys`` holds the lineage of every session that was put, before and after.
        """
        parents = []
        for key in keys:
            if key in self._children and key in self._members:
                parents.append(key)
            else:
                self._below.pop(key, None)
        # The deepest first: what they have below them is part of the sums above.
        for key in sorted(parents, key=lambda key: -len(self.lineage(key))):
            total = _NOTHING
            for child in self._children[key]:
                if self.parent(child) == key:
                    total += self._members[child].tokens + self.below(child)
            self._below[key] = total

    def below(self, key: SessionKey) -> TokenUsage:
        """Return what all subagents below a session used, at any depth."""
        return self._below.get(key, _NOTHING)
