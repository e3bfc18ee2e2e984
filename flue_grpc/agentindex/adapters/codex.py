"""Codex (formats §3): where its transcripts lie and what they sum up to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from flue_grpc.agentindex.adapters._codex_origin import Origin
from flue_grpc.agentindex.adapters._codex_pieces import (
    LINES,
    Line,
    pieces_of,
    unbare,
)
from flue_grpc.agentindex.adapters._codex_state import State, model_of, take
from flue_grpc.agentindex.adapters._json_values import DAMAGE, time_of
from flue_grpc.agentindex.adapters._names import is_id, title_of
from flue_grpc.agentindex.adapters._pieces import Stamped, messages_of
from flue_grpc.agentindex.adapters._places import directory_from, is_plain, stem_of
from flue_grpc.agentindex.adapters._summaries import Traits, summary_of
from flue_grpc.agentindex.adapters._tally import merged
from flue_grpc.agentindex.adapters.base import (
    Context,
    FileFacts,
    Ledger,
    LineUsage,
    Root,
    Source,
    Taken,
)
from flue_grpc.agentindex.json_repair import whole_objects
from flue_grpc.limits import LINE_MESSAGES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flue_grpc.agentindex.lines import LineBlock
    from flue_grpc.agentindex.values import Message, Summary

_ROLLOUT: Final = re.compile(
    r"rollout-(?:.*-)?"
    r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})",
    re.IGNORECASE | re.DOTALL,
)
_SESSIONS: Final = "sessions"
_ARCHIVED: Final = "archived_sessions"
_DATE_DEPTH: Final = 3  # year, month, day


class Codex:
    """The adapter for Codex."""

    tool = "codex"
    state_type = State

    def roots(self, home: str, env: Mapping[str, str]) -> tuple[Root, ...]:
        """List the active and the archived sessions of ``$CODEX_HOME``."""
        directory = directory_from(home, env.get("CODEX_HOME"), ".codex")
        return tuple(Root(f"{directory}/{kind}", kind) for kind in (_SESSIONS, _ARCHIVED))

    def candidate(self, root: Root, relative: tuple[str, ...]) -> Source | None:
        """Take ``rollout-<time>-<uuid>.jsonl``; an archived copy yields to an active one."""
        match = _ROLLOUT.fullmatch(stem_of(relative[-1]))
        if not match or not self._may_lie(root, len(relative) - 1):
            return None
        return Source(self.tool, match[1], rank=int(root.kind == _ARCHIVED))

    def enters(self, root: Root, relative: tuple[str, ...]) -> bool:
        """Enter the directories of dates; the archive is flat."""
        return is_plain(relative[-1]) and self._may_lie(root, len(relative))

    def start(self, source: Source) -> State:
        """Return the state before the first line."""
        return State(Origin(id=source.id))

    def feed(self, state: State, block: LineBlock, ledger: Ledger) -> Taken:
        """Take in some lines."""
        usage: list[LineUsage] = []
        decode = LINES.decoder_for(block)
        models: list[tuple[int, str]] = []
        view, begin, context = block.view, 0, state.context
        for end in block.ends:
            line = view[begin:end]
            begin = end + 1
            try:
                record = decode(line)
            except DAMAGE:
                usage += _feed_damaged(state, line, ledger)
            else:
                if record.payload is None:
                    record = unbare(record, line)
                usage += take(state, record, pieces_of(record, context), ledger)
            if state.context is not context:
                if state.context.model != context.model:
                    models.append((end, state.context.model))
                context = state.context
        return Taken(usage, models)

    def context(self, state: State) -> Context:
        """Return the model in force, and whether events stand in for messages."""
        return state.context

    def summary(self, state: State, source: Source, file: FileFacts) -> Summary | None:
        """Return the summary; None when the name in the file name is no id."""
        if not is_id(source.id):
            return None
        origin = state.origin
        prompt = state.event_prompt or state.block_prompt or state.goal
        tally = merged(state.tally, state.mirror) if state.context.mirror else state.tally
        traits = Traits(
            id=source.id,
            cwd=origin.cwd or state.turn_cwd or state.environment_cwd,
            title=state.name or title_of(prompt) or origin.agent_name,
            first_prompt=prompt,
            resume=("codex", "resume", source.id),
            parent_id=origin.parent_id,
            is_subagent=origin.is_subagent,
            git_branch=origin.git_branch,
            tool_version=origin.tool_version,
        )
        return summary_of(self.tool, traits, tally, file)

    def messages(self, line: bytes, offset: int, context: Context) -> tuple[list[Message], Context]:
        """Return the messages of a line, the assistant's with the model in force."""
        messages: list[Message] = []
        model = context.model
        for record in _records(line):
            model = model_of(record) or model
            pieces = pieces_of(record, context)[: LINE_MESSAGES - len(messages)]
            if pieces:
                stamped = Stamped(offset, time_of(record.timestamp), model)
                messages += messages_of(pieces, len(messages), stamped)
        return messages, context if model == context.model else Context(model, context.mirror)

    def _may_lie(self, root: Root, depth: int) -> bool:
        return depth <= (0 if root.kind == _ARCHIVED else _DATE_DEPTH)


def _records(line: bytes) -> Iterator[Line]:
    try:
        yield unbare(LINES.decode_any(line), line)
    except DAMAGE:
        for data in whole_objects(line):
            yield unbare(LINES.one_of(data), data)


def _feed_damaged(state: State, line: memoryview, ledger: Ledger) -> Iterator[LineUsage]:
    room = LINE_MESSAGES
    for record in _records(bytes(line)):
        pieces = pieces_of(record, state.context)[:room]
        room -= len(pieces)
        yield from take(state, record, pieces, ledger)
