"""Values of the Store to and from protobuf.

``add_…`` functions build a message inside the response that will hold it, which
saves a copy, and return an upper bound of its serialised size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flue_grpc.rpc.sizes import SCALARS_BYTES, TEXT_BYTES, text_bytes
from flue_grpc.store.values import Draft, ToolCall

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
    from google.protobuf.timestamp_pb2 import Timestamp

    from flue.store.v1 import store_pb2
    from flue_grpc.store.values import MemoryEntry, Message, SearchResult, Session

    Sessions = RepeatedCompositeFieldContainer[store_pb2.Session]
    Messages = RepeatedCompositeFieldContainer[store_pb2.Message]
    Entries = RepeatedCompositeFieldContainer[store_pb2.MemoryEntry]
    Results = RepeatedCompositeFieldContainer[store_pb2.SearchResult]

_USUAL_BYTES: Final = 64  # tags, lengths, id, role and time of a message that has no more


def set_time(target: Timestamp, microseconds: int) -> None:
    """Set a Timestamp."""
    seconds, rest = divmod(microseconds, 1_000_000)
    target.seconds = seconds
    target.nanos = rest * 1000


def fill_session(target: store_pb2.Session, session: Session) -> None:
    """Set every field of a session."""
    target.id = session.id
    target.title = session.title
    set_time(target.created_at, session.created_at)
    set_time(target.updated_at, session.updated_at)


def add_session(items: Sessions, session: Session) -> int:
    """Append a session."""
    fill_session(items.add(), session)
    return SCALARS_BYTES + text_bytes(session.id, session.title)


def fill_message(target: store_pb2.Message, message: Message) -> int:
    """Set every field of a message and return a bound of its size."""
    content = message.content
    target.id = message.id
    target.session_id = message.session_id
    target.role = message.role
    target.content = content
    seconds, rest = divmod(message.created_at, 1_000_000)
    created_at = target.created_at
    created_at.seconds = seconds
    created_at.nanos = rest * 1000
    size = _USUAL_BYTES + 4 * len(message.session_id)
    size += len(content) if content.isascii() else len(content.encode())
    if (
        message.tool_calls
        or message.images
        or message.provider
        or message.name
        or message.tool_call_id
        or message.truncated
    ):
        size += _fill_rest(target, message)
    return size


def _fill_rest(target: store_pb2.Message, message: Message) -> int:
    """Set what most messages do not have."""
    target.provider = message.provider
    target.tool_call_id = message.tool_call_id
    target.name = message.name
    target.truncated = message.truncated
    target.images.extend(message.images)
    texts = (message.provider, message.tool_call_id, message.name, *message.images)
    size = SCALARS_BYTES + text_bytes(*texts) + len(message.images) * TEXT_BYTES
    return size + sum([_add_tool_call(target, call) for call in message.tool_calls])


def add_message(items: Messages, message: Message) -> int:
    """Append a message."""
    return fill_message(items.add(), message)


def add_result(items: Results, result: SearchResult) -> int:
    """Append a search result with its window."""
    target = items.add(
        session_title=result.session_title, is_subagent=result.is_subagent, score=result.score
    )
    size = SCALARS_BYTES + text_bytes(result.session_title)
    size += fill_message(target.message, result.message)
    for message in result.window:
        size += fill_message(target.window.add(), message)
    return size


def fill_entry(target: store_pb2.MemoryEntry, entry: MemoryEntry) -> None:
    """Set every field of a memory entry."""
    target.id = entry.id
    target.scope = entry.scope
    target.content = entry.content
    target.pinned = entry.pinned
    set_time(target.created_at, entry.created_at)
    set_time(target.updated_at, entry.updated_at)


def add_entry(items: Entries, entry: MemoryEntry) -> int:
    """Append a memory entry."""
    fill_entry(items.add(), entry)
    return SCALARS_BYTES + text_bytes(entry.scope, entry.content)


def draft_of(message: store_pb2.Message) -> Draft:
    """Read the message that a client wants appended; what the server sets is left out."""
    return Draft(
        role=message.role,
        content=message.content,
        provider=message.provider,
        tool_calls=tuple(_tool_call_of(call) for call in message.tool_calls),
        tool_call_id=message.tool_call_id,
        name=message.name,
        images=tuple(message.images),
    )


def _tool_call_of(call: store_pb2.ToolCall) -> ToolCall:
    function = call.function
    return ToolCall(
        call.id, call.type, function.name, function.arguments, tuple(sorted(call.extra.items()))
    )


def _add_tool_call(target: store_pb2.Message, call: ToolCall) -> int:
    added = target.tool_calls.add(id=call.id, type=call.type)
    added.function.name = call.name
    added.function.arguments = call.arguments
    size = SCALARS_BYTES + text_bytes(call.id, call.type, call.name, call.arguments)
    for name, text in call.extra:
        added.extra[name] = text
        size += 2 * TEXT_BYTES + text_bytes(name, text)
    return size
