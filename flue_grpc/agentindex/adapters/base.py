"""What every adapter offers, and the values that cross its edge.

An adapter knows one tool: where its transcripts lie, which of them are sessions,
and what each line says. It does no I/O: discovery walks, the index keeps state,
pages read lines. ``feed`` and ``messages`` share one classification, so that the
counts of a summary and the messages of its pages agree (formats §8.14).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import msgspec

from flue_grpc.agentindex.values import TokenUsage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flue_grpc.agentindex.lines import LineBlock
    from flue_grpc.agentindex.values import Message, Summary


class Root(msgspec.Struct, frozen=True):
    """A directory below which a tool keeps transcripts; it may be a symlink itself.

    ``path`` is absolute, ``kind`` is the adapter's own word for the layout below it.
    """

    path: str
    kind: str


class Source(msgspec.Struct, frozen=True, gc=False):
    """What the place and name of a file tell about its transcript.

    ``id`` is final except for tools that write it inside (Pi): ``Summary.id`` is.
    Of two files with one id the lower ``rank`` wins (formats §3.1). ``folder`` is
    the name of the directory that the file, or its parent session, lies in.
    """

    tool: str
    id: str
    parent_id: str = ""
    is_subagent: bool = False
    rank: int = 0
    folder: str = ""


class FileFacts(msgspec.Struct, frozen=True, gc=False):
    """What the file system tells: bytes, modification time in microseconds, revision."""

    size: int
    mtime: int
    revision: str


class Context(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """All that the messages of a line depend on besides the line.

    ``model`` is the one in force before the line. ``mirror`` says that the file has
    its conversation in mirror events alone (formats §3.3); it is a fact of the whole
    file, so the value of the newest state holds for every line, also for lines before
    older checkpoints.
    """

    model: str = ""
    mirror: bool = False


class LineUsage(msgspec.Struct, frozen=True, gc=False):
    """What one object of a line adds to the usage of its transcript.

    ``ts`` is in microseconds, None when not recorded; ``cost_usd`` is None when none is
    recorded; ``message_count`` counts messages that are not system text. The sums over
    all lines are the summary's figures, so a correction of earlier lines is negative.
    """

    ts: int | None
    model: str
    tokens: TokenUsage
    cost_usd: float | None = None
    message_count: int = 0


class Taken(NamedTuple):
    """What lines add to a transcript.

    ``models`` tells where the context's model changed: the place in ``LineBlock.ends`` of
    the line that changed it, and the model in force behind that line.
    """

    usage: list[LineUsage]
    models: Sequence[tuple[int, str]] = ()


class Ledger(Protocol):
    """What a transcript has counted so far, by a signed 64-bit hash of each key."""

    def get(self, key: int) -> TokenUsage | None:
        """Return what was put last under ``key``."""

    def put(self, key: int, usage: TokenUsage) -> None:
        """Remember ``usage`` under ``key``."""


class MemoryLedger:
    """A ledger of one transcript that is held in memory."""

    __slots__ = ("entries", "get", "put")

    def __init__(self) -> None:
        """Start empty; ``entries`` is what an owner saves."""
        self.entries: dict[int, TokenUsage] = {}
        self.get = self.entries.get
        self.put = self.entries.__setitem__


State = TypeVar("State", bound=msgspec.Struct)


class Adapter(Protocol[State]):
    """One tool. All methods are total: no content of a file makes them raise.

    ``State`` is a mutable msgspec struct, msgpack-serialisable and bounded in size; it
    is a function of the lines fed, wherever the file was cut between two sweeps.
    """

    tool: str
    state_type: type[State]

    def roots(self, home: str, env: Mapping[str, str]) -> tuple[Root, ...]:
        """List the directories to look in; they need not exist. ``env`` may be empty."""

    def candidate(self, root: Root, relative: tuple[str, ...]) -> Source | None:
        """Judge a file by its path below ``root``; None when it is no transcript."""

    def enters(self, root: Root, relative: tuple[str, ...]) -> bool:
        """Say whether discovery walks into the directory ``relative`` below ``root``."""

    def start(self, source: Source) -> State:
        """Return the state before the first line."""

    def feed(self, state: State, block: LineBlock, ledger: Ledger) -> Taken:
        """Take in some lines, which come in file order; return what they add.

        It makes no difference how lines are parted into blocks. The block is valid
        during the call only: nothing that is kept may refer to it.
        """

    def context(self, state: State) -> Context:
        """Return the context of the line that follows those fed so far."""

    def summary(self, state: State, source: Source, file: FileFacts) -> Summary | None:
        """Return the summary of the lines fed so far; None when it is not to be indexed.

        ``subagent_tokens`` is zero: only the whole index knows it.
        """

    def messages(self, line: bytes, offset: int, context: Context) -> tuple[list[Message], Context]:
        """Return the line's messages with whole texts, and the context after the line.

        At most ``limits.LINE_MESSAGES``, ``index`` from 0 in the order of the line.
        """
