"""What the lines of a Codex thread sum up to (formats §3.5 to §3.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.agentindex.adapters._codex_origin import Origin
from flue_grpc.agentindex.adapters._codex_pieces import (
    Line,
    Payload,
    has_images,
    is_native_message,
    is_plain_prompt,
)
from flue_grpc.agentindex.adapters._codex_usage import Counter, Provisional, is_zero, raise_turn
from flue_grpc.agentindex.adapters._injected import codex_cwd, codex_request, split_codex
from flue_grpc.agentindex.adapters._json_values import text_of, time_of
from flue_grpc.agentindex.adapters._names import (
    directory_of,
    first_prose,
    label_of,
    prompt_of,
    title_of,
)
from flue_grpc.agentindex.adapters._pieces import IMAGE, SYSTEM_TEXT, Piece
from flue_grpc.agentindex.adapters._tally import NO_TOKENS, Tally
from flue_grpc.agentindex.adapters.base import Context, LineUsage

if TYPE_CHECKING:
    from flue_grpc.agentindex.adapters.base import Ledger

_NOTHING: Final[tuple[LineUsage, ...]] = ()
_TURN_STARTS: Final = frozenset({"task_started", "turn_started"})


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


def take(state: State, line: Line, pieces: list[Piece], ledger: Ledger) -> tuple[LineUsage, ...]:
    """Take in a line's record; return what it adds to the usage."""
    payload = line.payload
    if payload is None:
        return _NOTHING
    if line.type == "session_meta":
        state.origin.take_meta(payload, time_of(line.timestamp))
        return _NOTHING
    is_own = state.origin.is_past_copies or not state.origin.inherits(line)
    if line.type != "response_item":
        return _take_event(state, line, pieces, ledger, is_own=is_own)
    undone: tuple[LineUsage, ...] = _NOTHING
    if state.context.mirror and is_native_message(line):
        undone = _end_mirror(state)
    if not pieces:
        return undone
    if payload.role == "user":
        _take_prompt(state, pieces, is_own=is_own)
    model = state.context.model if pieces[-1].shape.role == "assistant" else ""
    added = state.tally.take(pieces, time_of(line.timestamp), model, inherited=not is_own)
    return undone if added is None else (*undone, added)


def model_of(line: Line) -> str:
    """Return the model that a line puts in force, empty for none."""
    if line.type != "turn_context" or line.payload is None:
        return ""
    return label_of(line.payload.model or "")


def _take_event(
    state: State,
    line: Line,
    pieces: list[Piece],
    ledger: Ledger,
    *,
    is_own: bool,
) -> tuple[LineUsage, ...]:
    event = line.payload or Payload()
    kind = event.type if line.type == "event_msg" else line.type
    if kind == "token_count":
        return _take_totals(state, line, event, is_own=is_own)
    if kind == "token_usage_record":
        return _take_record(state, line, event, ledger, is_own=is_own)
    if kind == "turn_context":
        _take_turn(state, line, event, is_own=is_own)
    elif is_own:
        _take_fact(state, kind or "", event)
    return _take_mirror(state, line, pieces, is_own=is_own) if pieces else _NOTHING


def _take_fact(state: State, kind: str, event: Payload) -> None:
    if kind in _TURN_STARTS:
        state.has_turns = True
    elif kind == "user_message":
        if not state.event_prompt and is_plain_prompt(event):
            state.event_prompt = _event_prompt(event)
    elif kind == "thread_name_updated":
        state.name = title_of(event.thread_name or "") or state.name
    elif kind == "thread_goal_updated" and event.goal and not state.goal:
        state.goal = prompt_of(event.goal.objective or "")


def _event_prompt(event: Payload) -> str:
    text = text_of(event.message)
    if not text.strip():
        return IMAGE if has_images(event) else ""
    _, prose = split_codex(text)
    return prompt_of(codex_request(prose))


def _take_mirror(
    state: State, line: Line, pieces: list[Piece], *, is_own: bool
) -> tuple[LineUsage, ...]:
    """Take in messages that stand beside the conversation, or for it."""
    is_mirror = line.type == "event_msg"
    tally = state.mirror if is_mirror else state.tally
    model = state.context.model if pieces[-1].shape.role == "assistant" else ""
    added = tally.take(pieces, time_of(line.timestamp), model, inherited=not is_own)
    if added is None:
        return _NOTHING
    if is_mirror:
        state.mirrored.add(added)
    return (added,)


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


def _take_turn(state: State, line: Line, turn: Payload, *, is_own: bool) -> None:
    state.has_turns = state.has_turns or is_own
    model = model_of(line)
    if model and model != state.context.model:
        state.context = Context(model, state.context.mirror)
        state.tally.add_model(model)
    state.turn_cwd = state.turn_cwd or directory_of(turn.cwd or "")


def _take_totals(
    state: State, line: Line, event: Payload, *, is_own: bool
) -> tuple[LineUsage, ...]:
    info = event.info
    if info is None or info.total_token_usage is None:
        return _NOTHING
    undone: tuple[LineUsage, ...] = _NOTHING
    if not state.has_totals:
        state.has_totals = True
        undone = tuple(state.records.take_back())
        for usage in undone:
            state.tally.add(usage.tokens)
        last = info.last_token_usage
        # A fork may begin with its parent's total, before it has used anything.
        if state.origin.is_fork and not state.has_turns and last and is_zero(last):
            is_own = False
    tokens = state.counter.take(info.total_token_usage, is_own=is_own)
    if tokens == NO_TOKENS:
        return undone
    ts, tokens = time_of(line.timestamp), state.tally.add(tokens)
    return (*undone, LineUsage(ts, state.context.model, tokens))


def _take_record(
    state: State, line: Line, record: Payload, ledger: Ledger, *, is_own: bool
) -> tuple[LineUsage, ...]:
    if state.has_totals or not is_own or record.turn_token_usage is None:
        return _NOTHING
    tokens = raise_turn(record.turn_id or "", record.turn_token_usage, ledger)
    if tokens is NO_TOKENS:
        return _NOTHING
    usage = LineUsage(time_of(line.timestamp), state.context.model, state.tally.add(tokens))
    state.records.add(usage)
    return (usage,)
