"""Codex (formats §3): where its transcripts lie and what they sum up to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.agentindex.adapters._codex_origin import Origin
from flue_grpc.agentindex.adapters._codex_pieces import (
    LINES,
    Line,
    Payload,
    has_images,
    is_native_message,
    is_plain_prompt,
    line_pieces,
    unbare,
)
from flue_grpc.agentindex.adapters._codex_usage import Counter, Provisional, is_zero, raise_turn
from flue_grpc.agentindex.adapters._injected import codex_cwd, codex_request, split_codex
from flue_grpc.agentindex.adapters._json_values import DAMAGE, time_of
from flue_grpc.agentindex.adapters._pieces import IMAGE, SYSTEM_TEXT, Piece, Stamped, messages_of
from flue_grpc.agentindex.adapters._places import directory_from, is_plain, stem_of
from flue_grpc.agentindex.adapters._tally import (
    NO_TOKENS,
    NOTHING,
    Tally,
    Traits,
    directory_of,
    first_prose,
    is_id,
    label_of,
    merged,
    prompt_of,
    summary_of,
    title_of,
)
from flue_grpc.agentindex.adapters.base import Context, FileFacts, Ledger, LineUsage, Root, Source
from flue_grpc.agentindex.json_repair import whole_objects
from flue_grpc.limits import LINE_MESSAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from flue_grpc.agentindex.values import Message, Summary

_ROLLOUT: Final = re.compile(
    r"rollout-(?:.*-)?"
    r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})",
    re.IGNORECASE | re.DOTALL,
)
_SESSIONS: Final = "sessions"
_ARCHIVED: Final = "archived_sessions"
_DATE_DEPTH: Final = 3  # year, month, day


class State(msgspec.Struct):
    """What the lines so far say about a thread.

    ``context.mirror`` holds as long as no message of the conversation is seen; till then
    the events stand in for them, in ``mirror``. ``records`` likewise stand in for totals.
    """

    origin: Origin
    context: Context = Context(mirror=True)
    tally: Tally = msgspec.field(default_factory=Tally)
    mirror: Tally = msgspec.field(default_factory=Tally)
    mirrored: Provisional = msgspec.field(default_factory=Provisional)
    counter: Counter = msgspec.field(default_factory=Counter)
    records: Provisional = msgspec.field(default_factory=Provisional)
    has_totals: bool = False
    has_turns: bool = False
    name: str = ""
    event_prompt: str = ""
    block_prompt: str = ""
    goal: str = ""
    turn_cwd: str = ""
    environment_cwd: str = ""


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

    def feed(
        self, state: State, line: bytes | memoryview, offset: int, ledger: Ledger
    ) -> tuple[LineUsage, ...]:
        """Take in one line."""
        try:
            record = LINES.decode(line)
        except DAMAGE:
            return _feed_damaged(state, line, ledger)
        record = unbare(record, line)
        pieces = _pieces(state, record)
        return _take(state, record, pieces[:LINE_MESSAGES], ledger)

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
            model = _model_of(record) or model
            pieces = line_pieces(record, mirror=context.mirror)[: LINE_MESSAGES - len(messages)]
            if pieces:
                stamped = Stamped(offset, time_of(record.timestamp), model)
                messages += messages_of(pieces, len(messages), stamped)
        return messages, context if model == context.model else Context(model, context.mirror)

    def _may_lie(self, root: Root, depth: int) -> bool:
        return depth <= (0 if root.kind == _ARCHIVED else _DATE_DEPTH)


def _records(line: bytes) -> Iterator[Line]:
    try:
        yield unbare(LINES.decode(line), line)
    except DAMAGE:
        for data in whole_objects(line):
            yield unbare(LINES.one_of(data), data)


def _feed_damaged(state: State, line: bytes | memoryview, ledger: Ledger) -> tuple[LineUsage, ...]:
    added: tuple[LineUsage, ...] = ()
    room = LINE_MESSAGES
    for record in _records(bytes(line)):
        pieces = _pieces(state, record)[:room]
        room -= len(pieces)
        added += _take(state, record, pieces, ledger)
    return added


def _pieces(state: State, line: Line) -> list[Piece]:
    # A first message of the conversation ends the time of its mirror.
    mirror = state.context.mirror and not is_native_message(line)
    return line_pieces(line, mirror=mirror)


def _model_of(line: Line) -> str:
    if line.type != "turn_context" or line.payload is None:
        return ""
    return label_of(line.payload.model or "")


def _take(state: State, line: Line, pieces: list[Piece], ledger: Ledger) -> tuple[LineUsage, ...]:
    """Take in a line's record; return what it adds to the usage."""
    payload = line.payload
    if payload is None:
        return NOTHING
    if line.type == "session_meta":
        state.origin.take_meta(payload, time_of(line.timestamp))
        return NOTHING
    is_own = not state.origin.inherits(line)
    added: tuple[LineUsage, ...] = NOTHING
    if state.context.mirror and is_native_message(line):
        added = _end_mirror(state)
    if pieces:
        added += _take_pieces(state, line, pieces, is_own=is_own)
    if line.type == "response_item":
        if payload.role == "user":
            _take_prompt(state, pieces, is_own=is_own)
        return added
    take = _TAKERS.get((payload.type if line.type == "event_msg" else line.type) or "")
    return added + take(state, line, payload, is_own, ledger) if take else added


def _take_pieces(
    state: State, line: Line, pieces: list[Piece], *, is_own: bool
) -> tuple[LineUsage, ...]:
    is_mirror = line.type == "event_msg"
    tally = state.mirror if is_mirror else state.tally
    count = tally.count(pieces, sidechain=False)
    if not count:
        return NOTHING
    ts = time_of(line.timestamp)
    if is_own and ts is not None:
        tally.stretch(ts)
    is_assistant = pieces[-1].shape.role == "assistant"
    usage = LineUsage(ts, state.context.model if is_assistant else "", NO_TOKENS, None, count)
    if is_mirror:
        state.mirrored.add(usage)
    return (usage,)


def _end_mirror(state: State) -> tuple[LineUsage, ...]:
    state.context = Context(state.context.model)
    state.mirror = Tally()
    return tuple(state.mirrored.take_back())


def _take_prompt(state: State, pieces: list[Piece], *, is_own: bool) -> None:
    if is_own and not state.block_prompt:
        state.block_prompt = first_prose(pieces, codex_request)
    if state.origin.cwd or state.turn_cwd or state.environment_cwd:
        return
    for piece in pieces:
        if piece.shape is SYSTEM_TEXT:
            cwd = directory_of(codex_cwd(piece.render(piece.body)))
            state.environment_cwd = state.environment_cwd or cwd


def _take_turn(
    state: State, line: Line, payload: Payload, is_own: bool, ledger: Ledger
) -> tuple[LineUsage, ...]:
    state.has_turns = state.has_turns or is_own
    model = _model_of(line)
    if model and model != state.context.model:
        state.context = Context(model, state.context.mirror)
        state.tally.add_model(model)
    state.turn_cwd = state.turn_cwd or directory_of(payload.cwd or "")
    return NOTHING


def _take_start(
    state: State, line: Line, payload: Payload, is_own: bool, ledger: Ledger
) -> tuple[LineUsage, ...]:
    state.has_turns = state.has_turns or is_own
    return NOTHING


def _take_event_prompt(
    state: State, line: Line, event: Payload, is_own: bool, ledger: Ledger
) -> tuple[LineUsage, ...]:
    if is_own and not state.event_prompt and is_plain_prompt(event):
        _, prose = split_codex(event.message or "")
        state.event_prompt = prompt_of(codex_request(prose))
        if not (event.message or "").strip() and has_images(event):
            state.event_prompt = IMAGE
    return NOTHING


def _take_name(
    state: State, line: Line, event: Payload, is_own: bool, ledger: Ledger
) -> tuple[LineUsage, ...]:
    if is_own:
        state.name = title_of(event.thread_name or "") or state.name
    return NOTHING


def _take_goal(
    state: State, line: Line, event: Payload, is_own: bool, ledger: Ledger
) -> tuple[LineUsage, ...]:
    if is_own and not state.goal and event.goal:
        state.goal = prompt_of(event.goal.objective or "")
    return NOTHING


def _take_totals(
    state: State, line: Line, event: Payload, is_own: bool, ledger: Ledger
) -> tuple[LineUsage, ...]:
    totals = event.info.total_token_usage if event.info else None
    if totals is None:
        return NOTHING
    added: tuple[LineUsage, ...] = NOTHING
    if not state.has_totals:
        state.has_totals = True
        added = tuple(state.records.take_back())
        for usage in added:
            state.tally.add(usage.tokens)
        last = event.info.last_token_usage
        is_baseline = state.origin.is_fork and not state.has_turns and last and is_zero(last)
        is_own = is_own and not is_baseline
    tokens = state.counter.take(totals)
    if not is_own or tokens is NO_TOKENS:
        return added
    tokens = state.tally.add(tokens)
    return (*added, LineUsage(time_of(line.timestamp), state.context.model, tokens))


def _take_record(
    state: State, line: Line, record: Payload, is_own: bool, ledger: Ledger
) -> tuple[LineUsage, ...]:
    if state.has_totals or not is_own or record.turn_token_usage is None:
        return NOTHING
    tokens = raise_turn(record.turn_id or "", record.turn_token_usage, ledger)
    if tokens is NO_TOKENS:
        return NOTHING
    usage = LineUsage(time_of(line.timestamp), state.context.model, state.tally.add(tokens))
    state.records.add(usage)
    return (usage,)


_TAKERS: Final[dict[str, Callable[[State, Line, Payload, bool, Ledger], tuple[LineUsage, ...]]]] = {
    "turn_context": _take_turn,
    "task_started": _take_start,
    "turn_started": _take_start,
    "user_message": _take_event_prompt,
    "thread_name_updated": _take_name,
    "thread_goal_updated": _take_goal,
    "token_count": _take_totals,
    "token_usage_record": _take_record,
}
