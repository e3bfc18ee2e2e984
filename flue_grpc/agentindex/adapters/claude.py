"""Claude Code (formats §2): where its transcripts lie and what they sum up to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.agentindex.adapters._claude_pieces import LINES, SYNTHETIC, Line, pieces_of
from flue_grpc.agentindex.adapters._claude_titles import Titles
from flue_grpc.agentindex.adapters._claude_usage import Requests
from flue_grpc.agentindex.adapters._injected import slash_command
from flue_grpc.agentindex.adapters._json_values import DAMAGE, time_of
from flue_grpc.agentindex.adapters._pieces import SYSTEM_TEXT, Piece, Stamped, messages_of
from flue_grpc.agentindex.adapters._places import directory_from, is_plain, stem_of
from flue_grpc.agentindex.adapters._records import Records
from flue_grpc.agentindex.adapters._tally import (
    NO_TOKENS,
    NOTHING,
    Tally,
    Traits,
    directory_of,
    first_prose,
    is_id,
    label_of,
    line_usage,
    prompt_of,
    summary_of,
)
from flue_grpc.agentindex.adapters.base import Context, FileFacts, Ledger, LineUsage, Root, Source
from flue_grpc.limits import LINE_MESSAGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flue_grpc.agentindex.values import Message, Summary

_AGENT: Final = "agent-"
_SUBAGENTS: Final = "subagents"
_CONTEXT: Final = Context()
_TITLE_TYPES: Final = frozenset({"summary", "custom-title", "agent-name", "ai-title"})
# Settings and housekeeping: their echoes never name a session (formats §5.2).
_LOCAL_COMMANDS: Final = frozenset({"/clear", "/model", "/rename"})
_NOT_MUNGED: Final = re.compile(r"[^A-Za-z0-9-]")
_MUNGED_LENGTH: Final = 200  # a longer directory name is cut here and a hash appended


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
        if not stem or len(relative) < 2:
            return None
        folder = relative[0]
        is_agent = stem.startswith(_AGENT)
        if len(relative) == 2:
            is_known = is_agent or is_id(stem)
            return Source(self.tool, stem, "", is_agent, 0, folder) if is_known else None
        parent = relative[1]
        session_id = f"{parent}.{stem}"
        is_below = len(relative) > 3 and relative[2] == _SUBAGENTS
        if not (is_agent and is_below and is_id(session_id)):
            return None
        return Source(self.tool, session_id, parent, True, 0, folder)

    def enters(self, root: Root, relative: tuple[str, ...]) -> bool:
        """Enter projects, the directories of sessions, and ``subagents`` in these."""
        return is_plain(relative[-1]) and (len(relative) < 3 or relative[2] == _SUBAGENTS)

    def start(self, source: Source) -> State:
        """Return the state before the first line."""
        return State(source.folder, source.is_subagent, source.is_subagent and not source.parent_id)

    def feed(
        self, state: State, line: bytes | memoryview, offset: int, ledger: Ledger
    ) -> tuple[LineUsage, ...]:
        """Take in one line."""
        if state.wants_parent:
            _take_parent(state, line)
        try:
            record = LINES.decode(line)
        except DAMAGE:
            return _feed_damaged(state, line, ledger)
        added = _take(state, record, pieces_of(record)[:LINE_MESSAGES], ledger)
        return NOTHING if added is None else (added,)

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


def _feed_damaged(state: State, line: bytes | memoryview, ledger: Ledger) -> tuple[LineUsage, ...]:
    added = []
    room = LINE_MESSAGES
    for record in LINES.rescue(line):
        pieces = pieces_of(record)[:room]
        room -= len(pieces)
        added.append(_take(state, record, pieces, ledger))
    return tuple(usage for usage in added if usage is not None)


def _take(state: State, line: Line, pieces: list[Piece], ledger: Ledger) -> LineUsage | None:
    """Take in a line's record; return what it adds to the usage."""
    _take_place(state, line)
    if line.uuid and not state.titles.is_settled:
        state.titles.take_uuid(line.uuid)
    tokens, model = NO_TOKENS, ""
    is_sidechain = line.is_sidechain is True
    if line.type == "assistant":
        model = _take_model(state.tally, line)
        is_branch = is_sidechain and not state.is_subagent
        tokens = state.requests.count(line, ledger, is_branch=is_branch)
    elif not pieces:
        if line.type in _TITLE_TYPES:
            state.titles.take(line)
        return None
    elif not is_sidechain:
        _take_prompts(state, pieces)
    if tokens is not NO_TOKENS:
        tokens = state.tally.add(tokens)
    count = state.tally.count(pieces, sidechain=is_sidechain)
    ts = time_of(line.timestamp)
    if count and ts is not None:
        state.tally.stretch(ts)
    return line_usage(ts, model, tokens, count)


def _take_place(state: State, line: Line) -> None:
    if line.version and line.version != state.tool_version:
        state.tool_version = label_of(line.version)
    if line.git_branch and line.git_branch != state.git_branch:
        state.git_branch = label_of(line.git_branch)
    if state.is_cwd_home or not line.cwd or line.cwd == state.cwd:
        return
    # The one that names the folder is where a resume looks; later ones drift (formats §2.7).
    if is_munged(line.cwd, state.folder):
        state.cwd = directory_of(line.cwd)
        state.is_cwd_home = bool(state.cwd)
    state.cwd = state.cwd or directory_of(line.cwd)


def _take_model(tally: Tally, line: Line) -> str:
    model = line.message.model if line.message else None
    if not model or model == SYNTHETIC:
        return ""
    if model not in tally.models:
        model = label_of(model)
        tally.add_model(model)
    return model


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


def _take_parent(state: State, line: bytes | memoryview) -> None:
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
