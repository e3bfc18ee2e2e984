"""Both services on a server that somebody else made."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import flue_grpc
from flue.agentindex.v1 import agent_index_pb2 as ai
from flue.agentindex.v1 import agent_index_pb2_grpc
from flue.store.v1 import store_pb2 as st
from flue.store.v1 import store_pb2_grpc
from flue_grpc.errors import AlreadyRunningError, ConfigError
from tests.wire import homes


@pytest.fixture
def host(short_path):
    """Another program's server, with a pool of one thread."""
    pool = ThreadPoolExecutor(1)
    server = grpc.server(pool)
    server.add_insecure_port(f"unix:{short_path}/host")
    yield server
    server.stop(None).wait()
    pool.shutdown()


@pytest.fixture
def settings(short_path):
    return flue_grpc.configure(home=short_path / "home", data_dir=short_path / "data")


def test_importing_the_package_imports_no_grpc():
    code = "import sys, flue_grpc; print(sorted({'grpc', 'apsw', 'msgspec'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert shown.stdout == b"[]\n"


def test_they_serve_beside_what_the_host_serves(host, settings, short_path, wait_until):
    homes.write_session(short_path / "home", 0)
    own = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
    host.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("h.H", {"Echo": own}),))
    with flue_grpc.add_services(host, settings) as services:
        host.start()
        wait_until(lambda: not services.index.building)
        with grpc.insecure_channel(f"unix:{short_path}/host") as channel:
            assert channel.unary_unary("/h.H/Echo")(b"x") == b"x"
            store = store_pb2_grpc.StoreStub(channel)
            index = agent_index_pb2_grpc.AgentIndexStub(channel)
            health = health_pb2_grpc.HealthStub(channel)
            store.CreateSession(st.CreateSessionRequest(id="s"))
            [listed] = index.Snapshot(ai.SnapshotRequest())
            assert [each.title for each in listed.summaries] == ["question 0"]
            assert health.Check(health_pb2.HealthCheckRequest()).status == 1
            # The host's one thread is not what our calls run on.
            streams = [store.ListSessions(st.ListSessionsRequest()) for _ in range(20)]
            assert [len(list(stream)) for stream in streams] == [1] * 20
            assert services.drain(20)
            with pytest.raises(grpc.RpcError) as caught:
                store.GetSession(st.GetSessionRequest(id="s"))
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            assert channel.unary_unary("/h.H/Echo")(b"x") == b"x"
        host.stop(1).wait()
    services.close()


def test_what_is_open_elsewhere_is_refused_and_nothing_is_left_open(host, settings):
    with (
        flue_grpc.add_services(host, settings),
        pytest.raises(AlreadyRunningError),
    ):
        flue_grpc.add_services(grpc.server(ThreadPoolExecutor(1)), settings)
    flue_grpc.add_services(grpc.server(ThreadPoolExecutor(1)), settings).close()


def test_unknown_settings_are_refused():
    with pytest.raises(ConfigError, match="unknown setting 'hoome'"):
        flue_grpc.configure(hoome="/")
