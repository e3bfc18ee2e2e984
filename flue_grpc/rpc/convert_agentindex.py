"""Values of the transcript index to protobuf.

``add_…`` functions build a message inside the response that will hold it, which
saves a copy, and return an upper bound of its serialised size.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue_grpc.agentindex.watching import Added, Removed, Updated
from flue_grpc.rpc.convert_store import set_time
from flue_grpc.rpc.sizes import SCALARS_BYTES, TEXT_BYTES, text_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

    from flue_grpc.agentindex.usage import GroupBy, UsageRow
    from flue_grpc.agentindex.values import (
        Direction,
        Hit,
        Kind,
        Message,
        Page,
        Role,
        Summary,
        TokenUsage,
    )
    from flue_grpc.agentindex.watching import SessionEvent

    SearchMode = Literal["substring", "ranked"]
    Events = RepeatedCompositeFieldContainer[pb.SessionEvent]
    Hits = RepeatedCompositeFieldContainer[pb.Hit]
    Messages = RepeatedCompositeFieldContainer[pb.Message]
    Rows = RepeatedCompositeFieldContainer[pb.UsageRow]

DIRECTIONS: Final[Mapping[int, Direction]] = MappingProxyType(
    {
        pb.DIRECTION_UNSPECIFIED: "forward",
        pb.DIRECTION_FORWARD: "forward",
        pb.DIRECTION_BACKWARD: "backward",
    }
)
ROLES: Final[Mapping[int, Role]] = MappingProxyType(
    {pb.ROLE_USER: "user", pb.ROLE_ASSISTANT: "assistant", pb.ROLE_SYSTEM: "system"}
)
KINDS: Final[Mapping[int, Kind]] = MappingProxyType(
    {
        pb.KIND_TEXT: "text",
        pb.KIND_THINKING: "thinking",
        pb.KIND_TOOL_CALL: "tool_call",
        pb.KIND_TOOL_RESULT: "tool_result",
    }
)
GROUPS: Final[Mapping[int, GroupBy]] = MappingProxyType(
    {
        pb.GROUP_BY_DAY: "day",
        pb.GROUP_BY_MODEL: "model",
        pb.GROUP_BY_TOOL: "tool",
        pb.GROUP_BY_CWD: "cwd",
        pb.GROUP_BY_SESSION: "session",
    }
)
SEARCH_MODES: Final[Mapping[int, SearchMode]] = MappingProxyType(
    {
        pb.SEARCH_MODE_UNSPECIFIED: "substring",
        pb.SEARCH_MODE_SUBSTRING: "substring",
        pb.SEARCH_MODE_RANKED: "ranked",
    }
)
EVENT_TYPES: Final[Mapping[type[SessionEvent], int]] = MappingProxyType(
    {
        Added: pb.EVENT_TYPE_ADDED,
        Updated: pb.EVENT_TYPE_UPDATED,
        Removed: pb.EVENT_TYPE_REMOVED,
    }
)
_ROLE_NUMBERS: Final = MappingProxyType({name: number for number, name in ROLES.items()})
_KIND_NUMBERS: Final = MappingProxyType({name: number for number, name in KINDS.items()})


def fill_summary(target: pb.Summary, summary: Summary) -> None:
    """Set every field of a summary."""
    target.id = summary.id
    target.tool = summary.tool
    target.cwd = summary.cwd
    target.title = summary.title
    target.first_prompt = summary.first_prompt
    if summary.started_at is not None:
        set_time(target.started_at, summary.started_at)
    if summary.ended_at is not None:
        set_time(target.ended_at, summary.ended_at)
    target.message_count = summary.message_count
    target.tool_call_count = summary.tool_call_count
    target.models.extend(summary.models)
    _fill_tokens(target.tokens, summary.tokens)
    if summary.cost_usd is not None:
        target.cost_usd = summary.cost_usd
    target.file_size = summary.file_size
    if summary.resume is not None:
        target.resume.command = summary.resume.command
        target.resume.args.extend(summary.resume.args)
        target.resume.dir = summary.resume.dir
    target.prompt_count = summary.prompt_count
    target.parent_id = summary.parent_id
    target.git_branch = summary.git_branch
    target.tool_version = summary.tool_version
    _fill_tokens(target.subagent_tokens, summary.subagent_tokens)
    set_time(target.updated_at, summary.updated_at)
    target.revision = summary.revision


def fill_page(target: pb.Page, page: Page) -> None:
    """Set every field of a page."""
    messages = target.messages
    for message in page.messages:
        _add_message(messages, message)
    target.start = page.start
    target.next = page.next
    target.eof = page.eof
    target.file_size = page.file_size
    target.revision = page.revision


def add_hit(items: Hits, hit: Hit) -> int:
    """Append a hit of a SUBSTRING search, which has no score."""
    return _add_hit(items, hit)[1]


def add_ranked_hit(items: Hits, hit: Hit) -> int:
    """Append a hit of a RANKED search."""
    target, size = _add_hit(items, hit)
    target.score = hit.score
    return size


def add_row(items: Rows, row: UsageRow) -> int:
    """Append a row of usage."""
    target = items.add(
        keys=row.keys, session_count=row.session_count, message_count=row.message_count
    )
    _fill_tokens(target.tokens, row.tokens)
    if row.cost_usd is not None:
        target.cost_usd = row.cost_usd
    return SCALARS_BYTES + len(row.keys) * TEXT_BYTES + text_bytes(*row.keys)


def _add_hit(items: Hits, hit: Hit) -> tuple[pb.Hit, int]:
    target = items.add(
        tool=hit.tool,
        id=hit.id,
        cwd=hit.cwd,
        title=hit.title,
        role=_ROLE_NUMBERS[hit.role],
        kind=_KIND_NUMBERS[hit.kind],
        snippet=hit.snippet,
        offset=hit.offset,
        index=hit.index,
        text_offset=hit.text_offset,
    )
    if hit.ts is not None:
        set_time(target.ts, hit.ts)
    for start, end in hit.ranges:
        target.ranges.add(start=start, end=end)
    texts = text_bytes(hit.tool, hit.id, hit.cwd, hit.title, hit.snippet)
    return target, SCALARS_BYTES + len(hit.ranges) * 2 * TEXT_BYTES + texts


def _add_message(items: Messages, message: Message) -> None:
    target = items.add(
        role=_ROLE_NUMBERS[message.role],
        kind=_KIND_NUMBERS[message.kind],
        text=message.text,
        offset=message.offset,
        index=message.index,
        text_size=message.text_size,
    )
    if message.ts is not None:
        set_time(target.ts, message.ts)
    if message.model:
        target.model = message.model
    if message.tool_name:
        target.tool_name = message.tool_name
    if message.call_id:
        target.call_id = message.call_id
    if message.sidechain:
        target.sidechain = True
    if message.truncated:
        target.truncated = True
    if message.is_error:
        target.is_error = True


def _fill_tokens(target: pb.TokenUsage, tokens: TokenUsage) -> None:
    target.SetInParent()
    target.input = tokens.input
    target.output = tokens.output
    target.cache_read = tokens.cache_read
    target.cache_write = tokens.cache_write
