"""The bounds of serialised sizes are bounds, and close ones."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as hs

from flue.agentindex.v1 import agent_index_pb2
from flue.store.v1 import store_pb2
from flue_grpc import limits
from flue_grpc.agentindex import values as index_values
from flue_grpc.agentindex.usage import UsageRow
from flue_grpc.rpc import convert_agentindex, convert_store
from flue_grpc.rpc.summary_cache import SummaryCache
from flue_grpc.store import message_size
from flue_grpc.store import values as store_values

TEXT = hs.text(max_size=40) | hs.integers(1, 5000).map(lambda n: "é" * n)
SHORT = hs.text(max_size=40)
INT64 = hs.integers(0, 2**63 - 1)
INT32 = hs.integers(0, 2**31 - 1)
TIME = hs.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
SLACK = 400


def tuples(strategy):
    return hs.lists(strategy, max_size=5).map(tuple)


CALLS = hs.builds(
    store_values.ToolCall,
    TEXT,
    TEXT,
    TEXT,
    TEXT,
    hs.dictionaries(TEXT, TEXT, max_size=3).map(lambda extra: tuple(extra.items())),
)
MESSAGES = hs.builds(
    store_values.Message,
    id=INT64,
    session_id=SHORT,
    role=SHORT,
    content=TEXT,
    provider=TEXT,
    tool_calls=tuples(CALLS),
    tool_call_id=TEXT,
    name=TEXT,
    images=tuples(TEXT),
    created_at=TIME,
    truncated=hs.booleans(),
)
SESSIONS = hs.builds(store_values.Session, TEXT, TEXT, TIME, TIME)
ENTRIES = hs.builds(store_values.MemoryEntry, INT64, TEXT, TEXT, hs.booleans(), TIME, TIME)
RESULTS = hs.builds(
    store_values.SearchResult, MESSAGES, TEXT, hs.booleans(), tuples(MESSAGES), hs.floats()
)
TOKENS = hs.builds(index_values.TokenUsage, INT64, INT64, INT64, INT64)
SUMMARIES = hs.builds(
    index_values.Summary,
    id=TEXT,
    tool=TEXT,
    cwd=TEXT,
    title=TEXT,
    first_prompt=TEXT,
    started_at=hs.none() | TIME,
    ended_at=hs.none() | TIME,
    message_count=INT32,
    tool_call_count=INT32,
    models=tuples(TEXT),
    tokens=TOKENS,
    cost_usd=hs.none() | hs.floats(allow_nan=False),
    file_size=INT64,
    resume=hs.none() | hs.builds(index_values.Resume, TEXT, tuples(TEXT), TEXT),
    prompt_count=INT32,
    parent_id=TEXT,
    git_branch=TEXT,
    tool_version=TEXT,
    subagent_tokens=TOKENS,
    updated_at=TIME,
    revision=TEXT,
    is_subagent=hs.booleans(),
)
SUMMARY = index_values.Summary(
    id="i",
    tool="claude",
    cwd="",
    title="one",
    first_prompt="",
    started_at=None,
    ended_at=None,
    message_count=1,
    tool_call_count=0,
    models=(),
    tokens=index_values.TokenUsage(),
    cost_usd=None,
    file_size=1,
    resume=None,
    prompt_count=0,
    parent_id="",
    git_branch="",
    tool_version="",
    subagent_tokens=index_values.TokenUsage(),
    updated_at=0,
    revision="r",
    is_subagent=False,
)
ROWS = hs.builds(UsageRow, tuples(TEXT), TOKENS, hs.none() | hs.floats(), INT32, INT32)
HITS = hs.builds(
    index_values.Hit,
    tool=TEXT,
    id=TEXT,
    cwd=TEXT,
    title=TEXT,
    ts=hs.none() | TIME,
    role=hs.sampled_from(["user", "assistant", "system"]),
    kind=hs.sampled_from(["text", "thinking", "tool_call", "tool_result"]),
    snippet=TEXT,
    offset=INT64,
    index=INT32,
    text_offset=INT64,
    ranges=tuples(hs.tuples(INT32, INT32)),
    score=hs.floats(),
)


def is_bound(response, field, add, item, parts=1):
    items = getattr(response, field)
    bound = add(items, item)
    size = response.ByteSize()
    assert size <= bound <= size + parts * SLACK
    return items[0]


@settings(max_examples=60)
@given(MESSAGES)
def test_messages(message):
    parts = 2 + len(message.tool_calls) * 4 + len(message.images)
    response = store_pb2.ListMessagesResponse()
    made = is_bound(response, "messages", convert_store.add_message, message, parts)
    assert made.id == message.id
    assert made.content == message.content
    assert made.created_at.ToMicroseconds() == message.created_at
    assert [call.function.arguments for call in made.tool_calls] == [
        call.arguments for call in message.tool_calls
    ]


@settings(max_examples=60)
@given(MESSAGES)
def test_a_message_that_is_read_and_appended_again_is_the_same(message):
    made = store_pb2.Message()
    convert_store.fill_message(made, message)
    draft = convert_store.draft_of(made)
    assert draft.content == message.content
    assert draft.images == message.images
    assert draft.provider == message.provider
    assert (draft.tool_call_id, draft.name) == (message.tool_call_id, message.name)
    for call, original in zip(draft.tool_calls, message.tool_calls, strict=True):
        assert (call.id, call.type, call.name) == (original.id, original.type, original.name)
        assert dict(call.extra) == dict(original.extra)


@settings(max_examples=100)
@given(MESSAGES, hs.sampled_from([0, 1, 127, 128, 16_383, 16_384, 2**21 - 1, 2**21]), hs.data())
def test_the_size_of_a_draft_is_what_its_message_takes(message, length, data):
    long = "x" * length
    place = data.draw(hs.sampled_from(["content", "name", "images", "arguments", "extra"]))
    if place in {"content", "name"}:
        message = msgspec.structs.replace(message, **{place: long})
    elif place == "images":
        message = msgspec.structs.replace(message, images=(*message.images, long))
    else:
        extra = (("k", long),) if place == "extra" else ()
        call = store_values.ToolCall("c", "", "", "" if extra else long, extra)
        message = msgspec.structs.replace(message, tool_calls=(*message.tool_calls, call))
    made = store_pb2.Message()
    convert_store.fill_message(made, msgspec.structs.replace(message, truncated=False))
    made.id = 2**63 - 1
    made.session_id = "𠮷" * limits.SESSION_ID_CODE_POINTS
    made.created_at.FromMicroseconds(store_values.MIN_TIME + 999_999)
    size = message_size.draft_size(convert_store.draft_of(made))
    assert size + message_size.ADDED == made.ByteSize()
    for field in ("id", "session_id", "created_at"):
        made.ClearField(field)
    assert size == made.ByteSize()


@settings(max_examples=40)
@given(SESSIONS)
def test_sessions(session):
    response = store_pb2.ListSessionsResponse()
    made = is_bound(response, "sessions", convert_store.add_session, session)
    assert (made.id, made.title) == (session.id, session.title)
    assert made.updated_at.ToMicroseconds() == session.updated_at


@settings(max_examples=40)
@given(ENTRIES)
def test_entries(entry):
    response = store_pb2.RecentMemoryResponse()
    made = is_bound(response, "entries", convert_store.add_entry, entry)
    assert (made.id, made.scope, made.pinned) == (entry.id, entry.scope, entry.pinned)


@settings(max_examples=30)
@given(RESULTS)
def test_results(result):
    response = store_pb2.SearchMessagesResponse()
    parts = 3 + sum(
        1 + len(each.tool_calls) * 4 + len(each.images) for each in (result.message, *result.window)
    )
    made = is_bound(response, "results", convert_store.add_result, result, parts)
    assert len(made.window) == len(result.window)


@settings(max_examples=60)
@given(SUMMARIES)
def test_summaries(summary):
    response = agent_index_pb2.SnapshotResponse()
    parts = 4 + len(summary.models)
    made = is_bound(response, "summaries", SummaryCache().add, summary, parts)
    assert made.HasField("cost_usd") == (summary.cost_usd is not None)
    assert made.HasField("resume") == (summary.resume is not None)
    assert made.HasField("started_at") == (summary.started_at is not None)
    assert made.tokens.cache_write == summary.tokens.cache_write
    assert list(made.models) == list(summary.models)


@settings(max_examples=40)
@given(ROWS)
def test_rows(row):
    response = agent_index_pb2.UsageResponse()
    made = is_bound(response, "rows", convert_agentindex.add_row, row, 2)
    assert list(made.keys) == list(row.keys)
    assert made.HasField("cost_usd") == (row.cost_usd is not None)


def test_a_summary_that_changed_is_sent_as_it_is_now(monkeypatch):
    cache = SummaryCache()
    first = SUMMARY
    second = msgspec.structs.replace(first, title="another")

    def sent(summary):
        response = agent_index_pb2.SnapshotResponse()
        cache.add(response.summaries, summary)
        return response.summaries[0].title

    assert [sent(each) for each in (first, first, second, first)] == [
        "one",
        "one",
        "another",
        "one",
    ]
    monkeypatch.setattr(limits, "SUMMARY_CACHE_BYTES", 100)
    for number in range(50):
        sent(msgspec.structs.replace(first, id=str(number)))
    assert len(cache._made) <= 3


@settings(max_examples=40)
@given(HITS, hs.booleans())
def test_hits(hit, ranked):
    response = agent_index_pb2.SearchResponse()
    add = convert_agentindex.add_ranked_hit if ranked else convert_agentindex.add_hit
    made = is_bound(response, "hits", add, hit)
    assert (made.snippet, made.offset, made.index) == (hit.snippet, hit.offset, hit.index)
    assert [(each.start, each.end) for each in made.ranges] == list(hit.ranges)
    assert agent_index_pb2.Role.Name(made.role) == f"ROLE_{hit.role.upper()}"
    assert agent_index_pb2.Kind.Name(made.kind) == f"KIND_{hit.kind.upper()}"
    assert made.HasField("score") == ranked
    assert made.HasField("ts") == (hit.ts is not None)
