"""Claude Code (formats §2): where its transcripts lie and what they sum up to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from zlib import crc32

import msgspec

from flue_grpc.agentindex.adapters._claude_pieces import LINES, SYNTHETIC, Line, pieces_of
from flue_grpc.agentindex.adapters._claude_titles import FRESH_MARKS, Titles
from flue_grpc.agentindex.adapters._claude_usage import Requests
from flue_grpc.agentindex.adapters._injected import slash_command
from flue_grpc.agentindex.adapters._json_values import DAMAGE, time_of
from flue_grpc.agentindex.adapters._names import (
    directory_of,
    first_prose,
    is_id,
    label_of,
    prompt_of,
)
from flue_grpc.agentindex.adapters._pieces import (
    SYSTEM_TEXT,
    TOOL_RESULT,
    Piece,
    Stamped,
    messages_of,
)
from flue_grpc.agentindex.adapters._places import directory_from, is_plain, stem_of
from flue_grpc.agentindex.adapters._records import Records
from flue_grpc.agentindex.adapters._summaries import Traits, summary_of
from flue_grpc.agentindex.adapters._tally import Tally
from flue_grpc.agentindex.adapters.base import (
    Context,
    FileFacts,
    Ledger,
    LineUsage,
    Root,
    Source,
    Taken,
)
from flue_grpc.limits import LINE_MESSAGES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flue_grpc.agentindex.lines import LineBlock
    from flue_grpc.agentindex.values import Message, Summary

_AGENT: Final = "agent-"
_SUBAGENTS: Final = "subagents"
_CONTEXT: Final = Context()
_TITLE_TYPES: Final = frozenset({"summary", "custom-title", "agent-name", "ai-title"})
# Settings and housekeeping: their echoes never name a session (formats §5.2).
_LOCAL_COMMANDS: Final = frozenset({"/clear", "/model", "/rename"})
_NOT_MUNGED: Final = re.compile(r"[^A-Za-z0-9-]")
_MUNGED_LENGTH: Final = 200  # a longer directory name is cut here and a hash appended
_PLACE_LENGTH: Final = 4096  # longer ones are looked at line by line, and never kept

Place = tuple[str | None, str | None, str | None]
"""A line's directory, tool version and git branch."""
_NOWHERE: Final[Place] = (None, None, None)


class State(msgspec.Struct):
    """What the lines so far say about a session."""

    folder: str
    is_subagent: bool
    wants_parent: bool
    tally: Tally = msgspec.field(default_factory=Tally)
    titles: Titles = msgspec.field(default_factory=Titles)
    requests: Requests = msgspec.field(default_factory=Requests)
    first_prompt: str = ""
    command: str = ""
    place: Place = _NOWHERE
    cwd: str = ""
    is_cwd_home: bool = False
    git_branch: str = ""
    tool_version: str = ""
    parent_id: str = ""


class _Parent(msgspec.Struct):
    session_id: str | None = msgspec.field(default=None, name="sessionId")


_PARENTS: Final = Records(_Parent)


class Claude:
    """The adapter for Claude Code."""

    tool = "claude"
    state_type = State

    def roots(self, home: str, env: Mapping[str, str]) -> tuple[Root, ...]:
        """List ``$CLAUDE_CONFIG_DIR``, or the default directories, old and new."""
        configured = env.get("CLAUDE_CONFIG_DIR")
        if configured:
            directories = [directory_from(home, configured)]
        else:
            directories = [directory_from(home, None, ".claude")]
            if env.get("XDG_CONFIG_HOME"):
                directories.append(directory_from(home, env["XDG_CONFIG_HOME"]) + "/claude")
            directories.append(directory_from(home, None, ".config", "claude"))
        return tuple(Root(f"{path}/projects", "projects") for path in directories)

    def candidate(self, root: Root, relative: tuple[str, ...]) -> Source | None:
        """Take ``<folder>/<id>.jsonl`` and the subagents beside and below it (formats §2.1)."""
        stem = stem_of(relative[-1])
        folder, *path = relative
        if not stem or not path:
            return None
        is_agent = stem.startswith(_AGENT)
        parent, *below = path
        if not below:
            source = Source(self.tool, stem, is_subagent=is_agent, folder=folder)
        elif is_agent and below[0] == _SUBAGENTS:
            source = Source(self.tool, f"{parent}.{stem}", parent, is_subagent=True, folder=folder)
        else:
            return None
        return source if is_id(source.id) else None

    def enters(self, root: Root, relative: tuple[str, ...]) -> bool:
        """Enter projects, the directories of sessions, and ``subagents`` in these."""
        return is_plain(relative[-1]) and relative[2:3] in ((), (_SUBAGENTS,))

    def start(self, source: Source) -> State:
        """Return the state before the first line."""
        wants_parent = source.is_subagent and not source.parent_id
        return State(source.folder, source.is_subagent, wants_parent)

    def feed(self, state: State, block: LineBlock, ledger: Ledger) -> Taken:
        """Take in some lines."""
        usage: list[LineUsage] = []
        decode = LINES.decoder_for(block)
        view, begin = block.view, 0
        for end in block.ends:
            line = view[begin:end]
            begin = end + 1
            if state.wants_parent:
                _take_parent(state, line)
            try:
                record = decode(line)
            except DAMAGE:
                usage += _feed_damaged(state, line, ledger)
                continue
            added = _take(state, record, pieces_of(record), ledger)
            if added is not None:
                usage.append(added)
        return Taken(usage)

    def context(self, state: State) -> Context:
        """Return nothing: a line of Claude Code stands for itself."""
        return _CONTEXT

    def summary(self, state: State, source: Source, file: FileFacts) -> Summary | None:
        """Return the summary; a flat subagent's id is known from its lines alone."""
        session_id, parent_id = source.id, source.parent_id
        if state.wants_parent or state.parent_id:
            parent_id = state.parent_id
            session_id = f"{parent_id}.{source.id}" if parent_id else source.id
        if not is_id(session_id):
            return None
        traits = Traits(
            id=session_id,
            cwd=state.cwd,
            title=state.titles.title,
            first_prompt=state.first_prompt or state.command,
            resume=("claude", "--resume", session_id),
            parent_id=parent_id,
            is_subagent=state.is_subagent,
            git_branch=state.git_branch,
            tool_version=state.tool_version,
        )
        return summary_of(self.tool, traits, state.tally, file)

    def messages(self, line: bytes, offset: int, context: Context) -> tuple[list[Message], Context]:
        """Return the messages of a line."""
        messages: list[Message] = []
        for record in LINES.all_of(line):
            pieces = pieces_of(record)[: LINE_MESSAGES - len(messages)]
            if pieces:
                stamped = Stamped(
                    offset,
                    time_of(record.timestamp),
                    (record.message.model if record.message else None) or "",
                    record.is_sidechain is True,
                )
                messages += messages_of(pieces, len(messages), stamped)
        return messages, context


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
    place = (line.cwd, line.version, line.git_branch)
    if place != state.place:
        _take_place(state, place)
    titles = state.titles
    if not titles.is_settled:
        titles.fresh.append(crc32(line.uuid))
        if len(titles.fresh) >= FRESH_MARKS:
            titles.pack()
    if line.type == "assistant":
        return _take_response(state, line, pieces, ledger)
    if not pieces:
        if line.type in _TITLE_TYPES:
            titles.take(line)
        return None
    sidechain = line.is_sidechain is True
    if not (sidechain or (len(pieces) == 1 and pieces[0].shape is TOOL_RESULT)):
        _take_prompts(state, pieces)
    return state.tally.take(pieces, time_of(line.timestamp), sidechain=sidechain)


def _take_response(
    state: State, line: Line, pieces: list[Piece], ledger: Ledger
) -> LineUsage | None:
    """Take in a line of the assistant, which may have usage without a message."""
    model = (line.message.model if line.message else None) or ""
    if model == SYNTHETIC:
        model = ""
    elif model and model not in state.tally.models:
        model = label_of(model)
        state.tally.add_model(model)
    is_branch = line.is_sidechain is True and not state.is_subagent
    tokens = state.requests.count(line, ledger, is_branch=is_branch)
    return state.tally.take(pieces, time_of(line.timestamp), model, tokens)


def _take_place(state: State, place: Place) -> None:
    """Note where a line was written and by what; the next one is often the same."""
    if place == _NOWHERE:
        return
    if sum(len(part or "") for part in place) <= _PLACE_LENGTH:
        state.place = place
    cwd, version, git_branch = place
    state.tool_version = label_of(version or "") or state.tool_version
    state.git_branch = label_of(git_branch or "") or state.git_branch
    if not cwd or state.is_cwd_home:
        return
    # The directory that names the folder is where a resume looks; later ones drift, and
    # without one it is the first (formats §2.7).
    directory = directory_of(cwd)
    state.is_cwd_home = bool(directory) and is_munged(cwd, state.folder)
    if state.is_cwd_home or not state.cwd:
        state.cwd = directory


def _take_prompts(state: State, pieces: list[Piece]) -> None:
    if not state.first_prompt:
        state.first_prompt = first_prose(pieces)
    for piece in pieces:
        if piece.shape is SYSTEM_TEXT:
            command = slash_command(piece.render(piece.body))
            if command is not None:
                _take_command(state, *command)


def _take_command(state: State, name: str, args: str) -> None:
    if name == "/rename":
        state.titles.rename(args)
    elif args and not state.command and name not in _LOCAL_COMMANDS:
        state.command = prompt_of(f"{name} {args}")


def _take_parent(state: State, line: memoryview) -> None:
    for record in _PARENTS.all_of(line):
        if record.session_id and is_id(record.session_id):
            state.parent_id = record.session_id
            state.wants_parent = False
            return


def is_munged(cwd: str, folder: str) -> bool:
    """Say whether ``folder`` is the directory name that Claude Code makes of ``cwd``.

    It works on UTF-16, so what lies beyond the first plane becomes two dashes.
    """
    munged = _NOT_MUNGED.sub(lambda match: "--" if match[0] > "\uffff" else "-", cwd)
    if len(munged) > _MUNGED_LENGTH:
        return folder[:_MUNGED_LENGTH] == munged[:_MUNGED_LENGTH]
    return munged == folder
