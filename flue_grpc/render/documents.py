"""A transcript as Markdown and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue_grpc.render.amounts import counted, money, total_tokens
from flue_grpc.render.plain import kind_name, role_name, to_plain
from flue_grpc.render.safe import as_json, for_line, for_terminal
from flue_grpc.text.markdown import code, fenced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def to_markdown(summary: pb.Summary, messages: Iterable[pb.Message]) -> Iterator[str]:
    """Yield the document piece by piece: prose as it was written, all else in fences."""
    yield f"# {for_line(summary.title) or for_line(summary.id)}\n\n"
    yield f"- {for_line(summary.tool)} session {code(summary.id)}\n"
    if summary.cwd:
        yield f"- in {code(summary.cwd)}\n"
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
    role, kind = role_name(message.role), kind_name(message.kind)
    if message.kind == pb.KIND_TEXT and message.role != pb.ROLE_SYSTEM:
        return f"\n## {role}\n\n{for_terminal(message.text)}\n{_note(message)}"
    name = f" {code(message.tool_name)}" if message.tool_name else ""
    label = role if message.kind == pb.KIND_TEXT else kind.replace("_", " ")
    failed = " (error)" if message.is_error else ""
    return f"\n**{label}**{name}{failed}\n\n{fenced(message.text)}{_note(message)}"


def _note(message: pb.Message) -> str:
    return f"\n*cut: {message.text_size} bytes in all*\n" if message.truncated else ""
