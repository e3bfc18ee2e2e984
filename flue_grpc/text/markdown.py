"""Text of strangers inside a Markdown document: harmless, and closing nothing around it."""

from __future__ import annotations

import re
from typing import Final

from flue_grpc.text.harmless import for_line, for_terminal

_TICKS: Final = re.compile("`+")
_SHORTEST_FENCE: Final = 3


def fenced(text: str, language: str = "") -> str:
    """Put text between fences that no run of backticks in it closes."""
    shown = for_terminal(text)
    fence = "`" * max(_SHORTEST_FENCE, _longest_run(shown) + 1)
    return f"{fence}{language}\n{shown}\n{fence}\n"


def code(text: str) -> str:
    """Make one line of text that is code among prose."""
    line = for_line(text)
    ticks = "`" * (_longest_run(line) + 1)
    return f"{ticks}{line}{ticks}" if len(ticks) == 1 else f"{ticks} {line} {ticks}"


def _longest_run(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
