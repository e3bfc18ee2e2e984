"""What an answer says of its own completeness (contract "AgentIndex", behaviour B4)."""

from __future__ import annotations

import threading

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue_grpc.agentindex import sweeper
from tests.wire import homes
from tests.wire.live import watching

ID = homes.session_id(1)
LISTS = ("Snapshot", "Search", "RANKED", "Usage")
NAMED = {"tool": "claude", "id": ID}


@pytest.fixture
def held(monkeypatch):
    """Hold every sweep back until the event is set."""
    event = threading.Event()
    plain = sweeper.discover

    def discover(*arguments):
        event.wait(60)
        return plain(*arguments)

    monkeypatch.setattr(sweeper, "discover", discover)
    yield event
    event.set()


@pytest.fixture
def flue(make_flue, held):
    """A product whose first sweep has not ended."""
    flue = make_flue(sweep_interval_seconds=3600)
    homes.write_session(flue.home, 1)
    yield flue.start()
    held.set()
    flue.stop()


def lists(flue):
    """Return every list's responses by its name."""
    ranked = ai.SearchRequest(query="question", mode=ai.SEARCH_MODE_RANKED)
    return {
        "Snapshot": list(flue.index.Snapshot(ai.SnapshotRequest())),
        "Search": list(flue.index.Search(ai.SearchRequest(query="question"))),
        "RANKED": list(flue.index.Search(ranked)),
        "Usage": list(flue.index.Usage(ai.UsageRequest(group_by=[ai.GROUP_BY_SESSION]))),
    }


def all_say(flue, building):
    """Say whether every response of every list says so."""
    said = {name: {response.building for response in got} for name, got in lists(flue).items()}
    return said == {name: {building} for name in LISTS}


def refusals(flue):
    """Return what each RPC says that names one transcript."""
    calls = [
        lambda: flue.index.Resolve(ai.ResolveRequest(**NAMED)),
        lambda: flue.index.ReadPage(ai.ReadPageRequest(**NAMED)),
        lambda: list(flue.index.ReadTranscript(ai.ReadTranscriptRequest(**NAMED))),
        lambda: list(flue.index.ReadTranscript(ai.ReadTranscriptRequest(**NAMED, follow=True))),
        lambda: list(flue.index.ReadMessage(ai.ReadMessageRequest(**NAMED))),
    ]
    said = []
    for call in calls:
        with pytest.raises(grpc.RpcError) as caught:
            call()
        info = error_details_pb2.ErrorInfo()
        rpc_status.from_call(caught.value).details[0].Unpack(info)
        said.append((caught.value.code(), info.reason, dict(info.metadata)))
    return said


def test_before_the_first_sweep_is_complete_everything_says_so(flue, held, wait_until):
    assert all_say(flue, building=True)
    not_found = (grpc.StatusCode.NOT_FOUND, "TRANSCRIPT_NOT_FOUND")
    assert refusals(flue) == [(*not_found, {"building": "true"})] * 5
    with watching(flue) as watch:
        wait_until(lambda: watch.caught_up)
        assert [(len(r.events), r.building) for r in watch.responses] == [(0, True)]
        held.set()
        wait_until(lambda: any(r.events for r in watch.responses))
    wait_until(lambda: all_say(flue, building=False))
    assert flue.index.Resolve(ai.ResolveRequest(**NAMED)).summary.id == ID
    homes.transcript_path(flue.home, 1).unlink()
    wait_until(lambda: flue.server.services.index.transcripts == 0)
    wait_until(lambda: refusals(flue) == [(*not_found, {})] * 5)


def test_a_first_sweep_that_fails_leaves_the_list_incomplete(make_flue, monkeypatch, wait_until):
    plain, failed = sweeper.discover, []

    def discover(*arguments):
        if not failed:
            failed.append(True)
            raise OSError(24, "Too many open files")
        return plain(*arguments)

    monkeypatch.setattr(sweeper, "discover", discover)
    flue = make_flue(sweep_interval_seconds=3600)
    homes.write_session(flue.home, 1)
    flue.start()
    wait_until(lambda: failed and not flue.server.services.index._sweeper._is_sweeping)
    assert all_say(flue, building=True)
    flue.server.services.index._sweeper.demand()
    wait_until(lambda: all_say(flue, building=False))
    assert flue.index.Resolve(ai.ResolveRequest(**NAMED)).summary.id == ID


def test_hidden_subagents_are_counted_on_every_response(make_flue):
    flue = make_flue()
    for number in range(30):
        homes.write_session(flue.home, number)
    below = homes.transcript_path(flue.home, 1).with_suffix("") / "subagents"
    below.mkdir(parents=True)
    for name in "abc":
        (below / f"agent-{name}.jsonl").write_text(homes.user_line(1, "do it"))
    flue.start().swept()

    def counts(**fields):
        responses = list(flue.index.Snapshot(ai.SnapshotRequest(**fields)))
        listed = sum(len(response.summaries) for response in responses)
        return listed, {response.hidden_subagents for response in responses}

    assert len(list(flue.index.Snapshot(ai.SnapshotRequest()))) > 1
    assert counts() == (30, {3})
    assert counts(limit=1) == (1, {3})
    assert counts(include_subagents=True) == (33, {0})
    assert counts(tools=["codex"]) == (0, {0})
    assert counts(cwd="/srv/work") == (30, {3})
    assert counts(cwd="/srv") == (0, {0})
