"""Pi (formats §4): where its transcripts lie and what they sum up to."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.agentindex.adapters._json_values import DAMAGE, time_of
from flue_grpc.agentindex.adapters._ledger_keys import key_of
from flue_grpc.agentindex.adapters._names import (
    directory_of,
    first_prose,
    is_id,
    label_of,
    prompt_of,
    title_of,
)
from flue_grpc.agentindex.adapters._pi_pieces import (
    LINES,
    CacheUsage,
    Line,
    Usage,
    pieces_of,
)
from flue_grpc.agentindex.adapters._pieces import (
    PLACEHOLDERS,
    USER_TEXT,
    Piece,
    Stamped,
    messages_of,
)
from flue_grpc.agentindex.adapters._places import directory_from, is_plain, stem_of
from flue_grpc.agentindex.adapters._summaries import Traits, summary_of
from flue_grpc.agentindex.adapters._tally import NO_TOKENS, Tally, exact_parts
from flue_grpc.agentindex.adapters.base import (
    Context,
    FileFacts,
    Ledger,
    LineUsage,
    Root,
    Source,
    Taken,
)
from flue_grpc.agentindex.values import TokenUsage
from flue_grpc.limits import LINE_MESSAGES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flue_grpc.agentindex.lines import LineBlock
    from flue_grpc.agentindex.values import Message, Summary

_FLAT: Final = "flat"
_NESTED: Final = "sessions"
_MAX_COST: Final = 1e9  # dollars; more for one request is damage
_MAX_COSTS: Final = 128  # far more than the parts that an exact sum can need
_USED_BY: Final = frozenset({"assistant", "toolResult"})
_MODEL_LINES: Final = frozenset({"session", "model_change"})
_SUMMARIES: Final = frozenset({"compaction", "branch_summary"})


class State(msgspec.Struct):
    """What the lines so far say about a session; without a header nothing counts."""

    has_header: bool = False
    is_refused: bool = False
    id: str = ""
    cwd: str = ""
    context: Context = Context()
    tally: Tally = msgspec.field(default_factory=Tally)
    costs: list[float] = []
    has_cost: bool = False
    name: str = ""
    first_prompt: str = ""


class Pi:
    """The adapter for Pi."""

    tool = "pi"
    state_type = State

    def roots(self, home: str, env: Mapping[str, str]) -> tuple[Root, ...]:
        """List the one directory in use: a flat one that is set, or that of the agent."""
        flat = env.get("PI_CODING_AGENT_SESSION_DIR")
        if flat:
            return (Root(directory_from(home, flat), _FLAT),)
        agent = directory_from(home, env.get("PI_CODING_AGENT_DIR"), ".pi", "agent")
        return (Root(f"{agent}/sessions", _NESTED),)

    def candidate(self, root: Root, relative: tuple[str, ...]) -> Source | None:
        """Take ``<start>_<id>.jsonl``, in the root or in a directory of a project."""
        stem = stem_of(relative[-1])
        if not stem or not self._may_lie(root, len(relative) - 1):
            return None
        return Source(self.tool, stem.partition("_")[2] or stem)

    def enters(self, root: Root, relative: tuple[str, ...]) -> bool:
        """Enter the directories of projects."""
        return is_plain(relative[-1]) and self._may_lie(root, len(relative))

    def start(self, source: Source) -> State:
        """Return the state before the first line."""
        return State()

    def feed(self, state: State, block: LineBlock, ledger: Ledger) -> Taken:
        """Take in some lines."""
        usage: list[LineUsage] = []
        decode = LINES.decoder_for(block)
        models: list[tuple[int, str]] = []
        view, begin, context = block.view, 0, state.context
        for end in block.ends:
            if state.is_refused:
                break
            line = view[begin:end]
            begin = end + 1
            try:
                record = decode(line)
            except DAMAGE:
                usage += _feed_damaged(state, line, ledger)
            else:
                added = _take(state, record, pieces_of(record), ledger)
                if added is not None:
                    usage.append(added)
            if state.context is not context:
                context = state.context
                models.append((end, context.model))
        return Taken(usage, models)

    def context(self, state: State) -> Context:
        """Return the model that was chosen last."""
        return state.context

    def summary(self, state: State, source: Source, file: FileFacts) -> Summary | None:
        """Return the summary; None without a header or without an id (formats §8.15)."""
        session_id = state.id or source.id
        if not state.has_header or not is_id(session_id):
            return None
        traits = Traits(
            id=session_id,
            cwd=state.cwd,
            title=state.name,
            first_prompt=state.first_prompt,
            resume=("pi", "--session", session_id),
            cost_usd=math.fsum(state.costs) if state.has_cost else None,
        )
        return summary_of(self.tool, traits, state.tally, file)

    def messages(self, line: bytes, offset: int, context: Context) -> tuple[list[Message], Context]:
        """Return the messages of a line, the assistant's with its model or the chosen one."""
        messages: list[Message] = []
        for record in LINES.all_of(line):
            context = _context_after(record, context)
            pieces = pieces_of(record)[: LINE_MESSAGES - len(messages)]
            if pieces:
                model = (record.message.model if record.message else None) or context.model
                stamped = Stamped(offset, _time_of(record), model)
                messages += messages_of(pieces, len(messages), stamped)
        return messages, context

    def _may_lie(self, root: Root, depth: int) -> bool:
        return depth <= (0 if root.kind == _FLAT else 1)


def _feed_damaged(state: State, line: memoryview, ledger: Ledger) -> Iterator[LineUsage]:
    room = LINE_MESSAGES
    for record in LINES.rescue(line):
        pieces = pieces_of(record)[:room]
        room -= len(pieces)
        added = _take(state, record, pieces, ledger)
        if added is not None:
            yield added


def _take(state: State, line: Line, pieces: list[Piece], ledger: Ledger) -> LineUsage | None:
    """Take in a line's record; return what it adds to the usage."""
    if not state.has_header:
        _take_header(state, line)
        return None
    if line.type != "message":
        state.context = _context_after(line, state.context)
        if line.type == "session_info":
            state.name = title_of(line.name or "") or state.name
    elif pieces and not state.first_prompt:
        state.first_prompt = _prompt(pieces)
    model = ""
    if line.message and line.message.role == "assistant":
        model = _model_of(line, state)
    usage = _usage_of(line)
    if usage is None or not _is_first(line, ledger):
        return state.tally.take(pieces, _time_of(line), model) if pieces else None
    cost = _cost_of(usage)
    if cost is not None:
        state.has_cost = True
        state.costs.append(cost)
        if len(state.costs) > _MAX_COSTS:
            state.costs = exact_parts(state.costs)
    model = model or state.context.model
    return state.tally.take(pieces, _time_of(line), model, _tokens_of(usage), cost)


def _take_header(state: State, line: Line) -> None:
    if state.is_refused:
        return
    if line.type == "session":
        state.has_header = True
        state.id = line.id if line.id and is_id(line.id) else ""
        state.cwd = directory_of(line.cwd or "")
        state.context = _context_after(line, state.context)
    else:
        # A fork of Pi keeps a place for the title before the header (formats §4.1).
        state.is_refused = line.type != "title"


def _context_after(line: Line, context: Context) -> Context:
    """Return the context with the model that a line chooses."""
    if not line.model_id or line.type not in _MODEL_LINES:
        return context
    model = label_of(line.model_id)
    return context if model == context.model else Context(model)


def _model_of(line: Line, state: State) -> str:
    """Return the model of a line of the assistant, which counts as used."""
    model = (line.message.model if line.message else None) or ""
    if not model or model not in state.tally.models:
        model = label_of(model) or state.context.model
        if model:
            state.tally.add_model(model)
    return model


def _time_of(line: Line) -> int | None:
    ts = time_of(line.timestamp)
    if ts is None and line.message:
        ts = time_of(line.message.timestamp)
    return ts


def _prompt(pieces: list[Piece]) -> str:
    """Return what a person typed in one message, its texts joined as Pi does (formats §4.3)."""
    texts = [
        piece.render(piece.body).strip()
        for piece in pieces
        if piece.shape is USER_TEXT and piece.body not in PLACEHOLDERS
    ]
    return prompt_of(" ".join(filter(None, texts))) or first_prose(pieces)


def _usage_of(line: Line) -> Usage | None:
    if line.type == "message":
        body = line.message
        return body.usage if body and body.role in _USED_BY else None
    return line.usage if line.type in _SUMMARIES else None


def _is_first(line: Line, ledger: Ledger) -> bool:
    """Say whether the usage of a line's id is not counted yet."""
    if not line.id:
        return True
    key = key_of(line.id)
    if ledger.get(key) is not None:
        return False
    ledger.put(key, NO_TOKENS)
    return True


def _tokens_of(usage: Usage) -> TokenUsage:
    read, write = usage.cache_read, usage.cache_write
    if read is None or write is None:
        cache = usage.cache or CacheUsage()
        read = cache.read if read is None else read
        write = usage.cache_creation if write is None else write
        write = cache.write if write is None else write
    if usage.input is None and usage.output is None and read is None and write is None:
        tokens = TokenUsage(input=usage.total_tokens or 0)
    else:
        tokens = TokenUsage(usage.input or 0, usage.output or 0, read or 0, write or 0)
    return NO_TOKENS if tokens == NO_TOKENS else tokens


def _cost_of(usage: Usage) -> float | None:
    total = usage.cost.total if usage.cost else None
    return total if total is not None and 0 <= total <= _MAX_COST else None
