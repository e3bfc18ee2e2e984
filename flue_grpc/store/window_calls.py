"""The first tool calls of a message, for a search window, of the first bytes of their column."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from flue_grpc import limits
from flue_grpc.store.tool_calls import decode_tool_calls, read_tool_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flue_grpc.store.values import ToolCall

_GAP: Final = re.compile(r"[\s,]*+")
_ENDS: Final = ('"}}', '"}')  # of a call that is cut within a text
_ESCAPE: Final = len(r"\ud83d\ude00")  # the longest that may be cut
_DECODER: Final = json.JSONDecoder()


def first_calls(column: bytes) -> Iterator[ToolCall]:
    """Yield the calls of a column of which there are limits.WINDOW_CALLS_BYTES at most.

    Of a longer column the call at its end is cut, or left out where it cannot be read.
    """
    text = column.decode("utf-8", "ignore")
    if not is_cut(column):
        yield from decode_tool_calls(text)
        return
    at = text.find("[") + 1
    while True:
        at = _end_of_gap(text, at)
        try:
            _, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        yield from decode_tool_calls(f"[{text[at:end]}]")
        at = end
    yield from _cut_call(text[at:])


def is_cut(column: bytes) -> bool:
    """Say whether the column goes on behind the bytes that were read of it."""
    return len(column) > limits.WINDOW_CALLS_BYTES


def _end_of_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def _cut_call(text: str) -> tuple[ToolCall, ...]:
    """Read a call that ends within a text, such as long arguments, as far as it goes."""
    for dropped in range(_ESCAPE):
        begun = text[: len(text) - dropped]
        for end in _ENDS:
            calls = read_tool_calls(f"[{begun}{end}]")
            if calls is not None:
                return calls
    return ()
