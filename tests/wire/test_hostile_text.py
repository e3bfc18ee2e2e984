"""Text that takes quadratic time to normalize, in a transcript and in the Store."""

from __future__ import annotations

import signal

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from flue.agentindex.v1 import agent_index_pb2, agent_index_pb2_grpc
from flue.store.v1 import store_pb2, store_pb2_grpc
from tests.wire import homes

SECONDS = 60.0
MARKS = "a" + "\u0301\u0323" * 250_000  # 1 MB


@pytest.fixture
def serving(run):
    """A server that finds such a transcript when it starts."""
    process = run("serve")
    process.ready()
    process.signal(signal.SIGTERM)
    assert process.end()[0] == 0
    lines = [homes.user_line(1, "needle before"), homes.user_line(1, MARKS, 1)]
    lines.append(homes.user_line(1, "needle behind", 2))
    homes.write_session(process.home, 1, lines)
    return run("serve").ready()


def is_healthy(channel):
    stub = health_pb2_grpc.HealthStub(channel)
    return stub.Check(health_pb2.HealthCheckRequest(), timeout=SECONDS).status == 1


def ranked(index, query):
    request = agent_index_pb2.SearchRequest(query=query, mode=agent_index_pb2.SEARCH_MODE_RANKED)
    answers = list(index.Search(request, timeout=SECONDS))
    return [hit for answer in answers for hit in answer.hits], answers[-1].building


def test_a_server_with_such_text_answers_finds_it_and_ends(serving, wait_until):
    channel = serving.channel()
    index = agent_index_pb2_grpc.AgentIndexStub(channel)
    store = store_pb2_grpc.StoreStub(channel)
    wait_until(lambda: not ranked(index, "needle")[1])
    assert len(ranked(index, "needle")[0]) == 2
    assert len(ranked(index, MARKS[:3000])[0]) == 1
    store.CreateSession(store_pb2.CreateSessionRequest(id="s"), timeout=SECONDS)
    message = store_pb2.Message(role="user", content=f"{MARKS} needle")
    request = store_pb2.AppendMessageRequest(session_id="s", message=message)
    appended = store.AppendMessage.future(request, timeout=SECONDS)
    entry = store_pb2.WriteMemoryEntryRequest(scope="s", content=MARKS)
    written = store.WriteMemoryEntry.future(entry, timeout=SECONDS)
    assert is_healthy(channel)
    assert appended.result().message.id == 1
    assert written.result().entry.id == 1
    search = store_pb2.SearchMessagesRequest(query=f"needle {MARKS[:3000]}")
    (answer,) = store.SearchMessages(search, timeout=SECONDS)
    assert [result.message.id for result in answer.results] == [1]
    assert is_healthy(channel)
    serving.signal(signal.SIGTERM)
    assert serving.end()[0] == 0
