"""Logging what goes wrong with single transcripts: once, for it may come with every one."""

from __future__ import annotations

import logging

_log = logging.getLogger(__name__)


class Faults:
    """The tools of which a fault was logged."""

    __slots__ = ("_tools",)

    def __init__(self) -> None:
        """Start with none."""
        self._tools: set[str] = set()

    def tell(self, tool: str, error: Exception) -> None:
        """Log the first fault of each tool, without the transcript's path."""
        if tool not in self._tools:
            self._tools.add(tool)
            _log.error("a transcript of %s cannot be taken in", tool, exc_info=error)
