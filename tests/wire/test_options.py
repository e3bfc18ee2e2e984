"""Settings that change what is served."""

from __future__ import annotations

import grpc
import pytest
from grpc_channelz.v1 import channelz_pb2, channelz_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue.store.v1 import store_pb2 as st
from flue_grpc.errors import DatabaseCorruptError, StoreStoppedError
from flue_grpc.rpc.runtime import AGENT_INDEX_NAME, STORE_NAME
from tests.wire import homes


def test_channelz_is_served_only_when_it_is_asked_for(make_flue):
    flue = make_flue().start()
    stub = channelz_pb2_grpc.ChannelzStub(flue.channel)
    with pytest.raises(grpc.RpcError) as caught:
        stub.GetServers(channelz_pb2.GetServersRequest())
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    flue.stop()
    flue = make_flue(channelz=True).start()
    stub = channelz_pb2_grpc.ChannelzStub(flue.channel)
    assert stub.GetServers(channelz_pb2.GetServersRequest()).server


def test_limits_of_pages(make_flue):
    flue = make_flue(page_default=3, page_max=5)
    lines = [homes.user_line(0, f"m{number}", number) for number in range(20)]
    homes.write_session(flue.home, 0, lines)
    flue.start().swept()

    def count(limit):
        request = ai.ReadPageRequest(tool="claude", id=homes.session_id(0), limit=limit)
        return len(flue.index.ReadPage(request).page.messages)

    assert [count(limit) for limit in (0, 1, 4, 5, 6, 200)] == [3, 1, 4, 5, 5, 5]


def test_limits_of_what_is_shown(make_flue):
    flue = make_flue(
        page_message_text_bytes=10,
        page_file_bytes=3000,
        snippet_code_points=5,
        first_prompt_bytes=12,
        search_default=2,
        search_max=3,
        search_bytes=1,
    )
    words = "0123456789 needle 0123456789"
    for number in range(6):
        homes.write_session(
            flue.home, number, [homes.user_line(number, words, n) for n in range(40)]
        )
    flue.start().swept()
    named = {"tool": "claude", "id": homes.session_id(0)}
    page = flue.index.ReadPage(ai.ReadPageRequest(**named)).page
    assert {message.text for message in page.messages} == {"0123456789"}
    assert all(message.truncated for message in page.messages)
    assert 1 < len(page.messages) < 40
    assert page.next <= 3000
    assert flue.index.Resolve(ai.ResolveRequest(**named)).summary.first_prompt == words[:12]
    [listed] = flue.index.Snapshot(ai.SnapshotRequest())
    assert {summary.first_prompt for summary in listed.summaries} == {words[:12]}
    watch = flue.index.Watch(ai.WatchRequest())
    assert {event.summary.first_prompt for event in next(watch).events} == {words[:12]}
    watch.cancel()

    def search(**fields):
        found = list(flue.index.Search(ai.SearchRequest(query="needle", **fields)))
        return found, [hit for response in found for hit in response.hits]

    assert len(search(max_bytes=1 << 40)[1]) == 2
    assert len(search(limit=100, max_bytes=1 << 40)[1]) == 3
    found, hits = search(limit=3)
    assert found[-1].truncated
    assert hits[0].snippet == "6789 needle 0123"


def test_budgets(make_flue):
    flue = make_flue(unary_calls=7, finite_streams=8, live_streams=9).start()
    budgets = flue.server.services.runtime.budgets.by_kind
    assert [budgets[kind].size for kind in ("unary", "finite", "live")] == [7, 8, 9]
    assert flue.server.services.runtime.workers._max_workers == 7 + 8 + 9 + 8 + 16


@pytest.mark.parametrize(
    ("error", "state"), [(StoreStoppedError, "stopped"), (DatabaseCorruptError, "corrupt")]
)
def test_a_store_that_cannot_serve_is_told_by_health_and_the_index_goes_on(
    flue, monkeypatch, error, state
):
    homes.write_session(flue.home, 0)
    flue.swept()
    health = health_pb2_grpc.HealthStub(flue.channel)

    def status(name):
        return health.Check(health_pb2.HealthCheckRequest(service=name)).status

    assert [status(name) for name in ("", STORE_NAME, AGENT_INDEX_NAME)] == [1, 1, 1]
    watch = health.Watch(health_pb2.HealthCheckRequest(service=STORE_NAME))
    assert next(watch).status == 1
    store = flue.server.services.store

    def fails(*arguments):
        raise error("it is over")

    monkeypatch.setattr(store, "create_session", fails)
    monkeypatch.setattr(type(store), "state", property(lambda _: state))
    with pytest.raises(grpc.RpcError):
        flue.store.CreateSession(st.CreateSessionRequest())
    assert next(watch).status == 2
    watch.cancel()
    assert [status(name) for name in ("", STORE_NAME, AGENT_INDEX_NAME)] == [2, 2, 1]
    [response] = flue.index.Snapshot(ai.SnapshotRequest())
    assert len(response.summaries) == 1
