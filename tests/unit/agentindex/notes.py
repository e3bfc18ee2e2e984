"""A tool with the simplest of formats, to test pages and searches by exact numbers.

A line is any number of objects {"notes": [text, ...], "model": name}; each note is a
message, in the model that was named last.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from flue_grpc.agentindex.adapters.base import Context
from flue_grpc.agentindex.json_repair import whole_objects
from flue_grpc.agentindex.located import Checkpoints, Located
from flue_grpc.agentindex.opening import open_transcript
from flue_grpc.agentindex.values import Message, Summary, TokenUsage
from flue_grpc.limits import LINE_MESSAGES
from flue_grpc.text.clean import sanitize

if TYPE_CHECKING:
    from pathlib import Path


class Notes:
    tool = "notes"

    def __init__(self) -> None:
        self.parsed = 0

    def messages(self, line, offset, context):
        self.parsed += 1
        messages = []
        model = context.model
        for data in whole_objects(line):
            note = msgspec.json.decode(data)
            model = note.get("model", model)
            messages += [(sanitize(text), model) for text in note.get("notes", ())]
        return [
            Message(
                role="user" if index % 2 == 0 else "assistant",
                kind="text",
                text=text,
                offset=offset,
                index=index,
                ts=offset,
                model=model,
                text_size=len(text.encode()),
            )
            for index, (text, model) in enumerate(messages[:LINE_MESSAGES])
        ], Context(model)


def note(*texts, model=None):
    """Write one object, without a newline."""
    members = {"notes": texts} if model is None else {"notes": texts, "model": model}
    return msgspec.json.encode(members)


def located(path: Path, checkpoints: Checkpoints | None = None, adapter=None) -> Located:
    """Find a file of notes as the index would, which has read all of it."""
    with open_transcript(str(path), str(path.parent)) as opened:
        revision, size = opened.revision, opened.size
    return Located(
        tool="notes",
        id=path.stem,
        path=str(path),
        root=str(path.parent),
        adapter=adapter or Notes(),
        summary=summary(path.stem, revision=revision, size=size),
        checkpoints=checkpoints or checkpoints_of(path.read_bytes()),
    )


def checkpoints_of(data: bytes) -> Checkpoints:
    """Lay a checkpoint at each change of the model, as the index does."""
    offsets, contexts = [0], [Context()]
    starts = [0, *(at + 1 for at, byte in enumerate(data) if byte == ord("\n"))]
    for start, end in pairwise(starts):
        _, context = Notes().messages(data[start : end - 1], start, contexts[-1])
        if context != contexts[-1]:
            offsets.append(end)
            contexts.append(context)
    return Checkpoints(tuple(offsets), tuple(contexts), exact_until=starts[-1], end=starts[-1])


def whole_parse(path: Path) -> list[Message]:
    """Read all messages in one go, with whole texts."""
    adapter, context, messages, offset = Notes(), Context(), [], 0
    for line in path.read_bytes().split(b"\n"):
        found, context = adapter.messages(line, offset, context)
        messages += found
        offset += len(line) + 1
    return messages


def summary(session_id: str, *, revision: str = "", size: int = 0, ended_at: int = 0) -> Summary:
    return Summary(
        id=session_id,
        tool="notes",
        cwd="/home/dev/notes",
        title=f"Title of {session_id}",
        first_prompt="",
        started_at=ended_at,
        ended_at=ended_at,
        message_count=1,
        tool_call_count=0,
        models=(),
        tokens=TokenUsage(),
        cost_usd=None,
        file_size=size,
        resume=None,
        prompt_count=1,
        parent_id="",
        git_branch="",
        tool_version="",
        subagent_tokens=TokenUsage(),
        updated_at=0,
        revision=revision,
        is_subagent=False,
    )
