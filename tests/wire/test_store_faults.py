"""A disk that fails under the running server: what callers hear, and what health says."""

from __future__ import annotations

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue.store.v1 import store_pb2 as st
from flue_grpc import services
from flue_grpc.store.values import StoreSettings
from tests.unit.store.faults import READ, SYNC, WRITE, Fault, FaultyVFS, full, io_error

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
CODE = grpc.StatusCode


@pytest.fixture
def vfs():
    faulty = FaultyVFS("faulty-wire")
    yield faulty
    faulty.unregister()


@pytest.fixture
def faulty(make_flue, vfs, monkeypatch):
    """A server whose Store lies on a disk that fails on demand; one message is there."""
    monkeypatch.setattr(services, "_store_settings", lambda _: StoreSettings(vfs=vfs.name))
    flue = make_flue().start()
    flue.store.CreateSession(st.CreateSessionRequest(id="s"))
    append(flue, "before")
    yield flue
    vfs.faults = []


def append(flue, text="x"):
    message = st.Message(role="user", content=text)
    request = st.AppendMessageRequest(session_id="s", message=message)
    return flue.store.AppendMessage(request, timeout=20)


WRITES = {
    "CreateSession": st.CreateSessionRequest(),
    "UpdateSession": st.UpdateSessionRequest(id="s", title="t"),
    "DeleteSession": st.DeleteSessionRequest(id="s"),
    "AppendMessage": st.AppendMessageRequest(session_id="s", message=st.Message(role="user")),
    "AppendMessages": st.AppendMessagesRequest(
        session_id="s", messages=[st.Message(role="user", content="y")]
    ),
    "WriteMemoryEntry": st.WriteMemoryEntryRequest(scope="g", content="c"),
    "UpdateMemoryEntry": st.UpdateMemoryEntryRequest(id=1, content="c"),
    "DeleteMemoryEntry": st.DeleteMemoryEntryRequest(id=1),
}


def refusal(call):
    """Return code and reason of a refused call, and whether it says when to try again."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    status = rpc_status.from_call(caught.value)
    info, may_retry = error_details_pb2.ErrorInfo(), False
    for detail in status.details:
        detail.Unpack(info)
        may_retry |= detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR)
    assert "/" not in status.message
    assert "store.db" not in str(status)
    return caught.value.code(), info.reason, may_retry


def contents(flue):
    request = st.ListMessagesRequest(session_id="s")
    return [m.content for r in flue.store.ListMessages(request) for m in r.messages]


def health(flue, name):
    stub = health_pb2_grpc.HealthStub(flue.channel)
    return stub.Check(health_pb2.HealthCheckRequest(service=name)).status


def test_after_a_failed_sync_every_write_is_refused_and_reads_go_on(faulty, vfs, wait_until):
    vfs.faults = [Fault("sync", "-wal", io_error(SYNC))]
    stopped = (CODE.FAILED_PRECONDITION, "STORE_STOPPED", False)
    assert refusal(lambda: append(faulty, "in doubt")) == stopped
    vfs.faults = []
    for name, request in WRITES.items():
        assert refusal(lambda r=request, n=name: getattr(faulty.store, n)(r)) == stopped, name
    assert contents(faulty) == ["before"]
    query = st.SearchMessagesRequest(query="before")
    assert sum(len(r.results) for r in faulty.store.SearchMessages(query)) == 1
    wait_until(lambda: health(faulty, "flue.store.v1.Store") == NOT_SERVING)
    assert health(faulty, "") == NOT_SERVING
    assert health(faulty, "flue.agentindex.v1.AgentIndex") == SERVING
    assert list(faulty.index.Snapshot(ai.SnapshotRequest()))


def test_a_restart_serves_what_was_answered_before_the_failed_sync(faulty, vfs, monkeypatch):
    vfs.faults = [Fault("sync", "-wal", io_error(SYNC))]
    refusal(lambda: append(faulty, "in doubt"))
    monkeypatch.setattr(services, "_store_settings", lambda _: StoreSettings())
    faulty.restart()
    assert contents(faulty) in (["before"], ["before", "in doubt"])
    append(faulty, "after")
    assert contents(faulty)[-1] == "after"
    assert health(faulty, "") == SERVING


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (full(), (CODE.RESOURCE_EXHAUSTED, "DISK_FULL", False)),
        (io_error(WRITE), (CODE.UNAVAILABLE, "DATABASE_IO_ERROR", True)),
    ],
    ids=["full", "io"],
)
@pytest.mark.parametrize("is_torn", [False, True], ids=["whole", "torn"])
def test_a_failed_write_is_told_rolled_back_and_over(faulty, vfs, error, expected, is_torn):
    vfs.faults = [Fault("write", "-wal", error, at=2, is_torn=is_torn)]
    assert refusal(lambda: append(faulty, "lost " * 3000)) == expected
    assert health(faulty, "") == SERVING
    append(faulty, "after")
    assert contents(faulty) == ["before", "after"]


def test_a_failed_read_is_told_and_the_next_one_is_served(faulty, vfs):
    faulty.restart()  # what a connection has read once it need not read again
    vfs.faults = [Fault("read", "", io_error(READ), times=1000)]
    unavailable = (CODE.UNAVAILABLE, "DATABASE_IO_ERROR", True)
    assert refusal(lambda: contents(faulty)) == unavailable
    vfs.faults = []
    assert contents(faulty) == ["before"]
    assert health(faulty, "") == SERVING
