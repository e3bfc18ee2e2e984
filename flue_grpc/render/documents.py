"""A transcript as Markdown and as JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue_grpc.render.amounts import counted, money, total_tokens
from flue_grpc.render.plain import to_plain
from flue_grpc.render.safe import as_json, for_line, for_terminal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TICKS: Final = re.compile("`+")
_SHORTEST_FENCE: Final = 3


def to_markdown(summary: pb.Summary, messages: Iterable[pb.Message]) -> Iterator[str]:
    """Yield the document piece by piece: prose as it was written, all else in fences."""
    yield f"# {for_line(summary.title) or summary.id}\n\n"
    yield f"- {summary.tool} session `{summary.id}`\n"
    if summary.cwd:
        yield f"- in {_code(summary.cwd)}\n"
    if summary.HasField("started_at"):
        yield f"- {summary.started_at.ToJsonString()} to {summary.ended_at.ToJsonString()}\n"
    yield f"- {counted(summary.message_count, 'message')}, "
    yield f"{counted(total_tokens(summary.tokens), 'token')}, "
    yield f"cost {money(summary)}\n"
    for message in messages:
        yield _section(message)


def to_json(summary: pb.Summary, messages: Iterable[pb.Message]) -> Iterator[str]:
    """Yield one JSON object with ``summary`` and ``messages``, a line for each message."""
    yield f'{{"summary":{as_json(to_plain(summary))},"messages":['
    separator = "\n"
    for message in messages:
        yield separator + as_json(to_plain(message))
        separator = ",\n"
    yield "\n]}\n"


def _section(message: pb.Message) -> str:
    text = for_terminal(message.text)
    role = pb.Role.Name(message.role).removeprefix("ROLE_").lower()
    if message.kind == pb.KIND_TEXT and message.role != pb.ROLE_SYSTEM:
        return f"\n## {role}\n\n{text}\n{_note(message)}"
    kind = pb.Kind.Name(message.kind).removeprefix("KIND_").lower().replace("_", " ")
    name = f" {_code(message.tool_name)}" if message.tool_name else ""
    label = role if message.kind == pb.KIND_TEXT else kind
    failed = " (error)" if message.is_error else ""
    fence = _fence(text)
    return f"\n**{label}**{name}{failed}\n\n{fence}\n{text}\n{fence}\n{_note(message)}"


def _fence(text: str) -> str:
    """Make a fence that no run of backticks in ``text`` closes."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    return "`" * max(_SHORTEST_FENCE, longest + 1)


def _code(text: str) -> str:
    line = for_line(text)
    ticks = "`" * (max(map(len, _TICKS.findall(line)), default=0) + 1)
    return f"{ticks}{line}{ticks}" if len(ticks) == 1 else f"{ticks} {line} {ticks}"


def _note(message: pb.Message) -> str:
    return f"\n*cut: {message.text_size} bytes in all*\n" if message.truncated else ""
