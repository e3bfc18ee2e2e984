"""``flue-grpc serve`` as a process: what it prints, refuses and leaves behind."""

from __future__ import annotations

import os
import signal
import socket
import stat
import threading
import time
from contextlib import suppress

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue.agentindex.v1 import agent_index_pb2_grpc
from flue.store.v1 import store_pb2 as st
from flue.store.v1 import store_pb2_grpc
from tests.wire import homes
from tests.wire.process import PATIENCE


def test_it_prints_the_address_and_two_lines_to_paste_and_nothing_else(run):
    server = run("serve", "--access-log", "off").ready()
    path = server.socket
    method = "flue.agentindex.v1.AgentIndex/Snapshot"
    curl = "buf curl --protocol grpc --http2-prior-knowledge"
    assert server.printed == [
        f"flue-grpc listens on unix:{path}",
        f"  grpcurl -plaintext -unix {path} {method}",
        f"  {curl} --unix-socket {path} http://localhost/{method}",
    ]
    server.signal(signal.SIGTERM)
    assert server.end() == (0, "", "")


def test_it_serves_both_services_on_a_private_socket_and_tidies_up(run):
    server = run("serve").ready()
    homes.write_session(server.home, 3)
    data = server.socket.parent
    assert stat.S_IMODE(server.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    channel = server.channel()
    store = store_pb2_grpc.StoreStub(channel)
    session = store.CreateSession(st.CreateSessionRequest(title="t"), timeout=PATIENCE).session
    assert session.id.startswith("ses_")
    index = agent_index_pb2_grpc.AgentIndexStub(channel)
    list(index.Snapshot(ai.SnapshotRequest(), timeout=PATIENCE))
    answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    server.signal(signal.SIGINT)
    code, out, err = server.end()
    assert (code, out) == (0, "")
    assert "Traceback" not in err
    assert not server.socket.exists()
    assert (data / "store.db").exists()
    left = {path.name for path in data.iterdir()}
    assert left == {"store.db", "lock", "flue.sock.lock"}
    again = run("serve").ready()
    store = store_pb2_grpc.StoreStub(again.channel())
    [listed] = store.ListSessions(st.ListSessionsRequest(), timeout=PATIENCE)
    assert [each.id for each in listed.sessions] == [session.id]


@pytest.mark.parametrize("lock", ["flue.sock.lock", "lock"])
def test_a_second_server_is_refused_by_name(run, short_path, lock):
    first = run("serve").ready()
    other = ("--listen", f"unix:{short_path}/other.sock") if lock == "lock" else ()
    second = run("serve", *other)
    code, out, err = second.end()
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert f"{first.socket.parent}/{lock} is locked by process {first.process.pid}" in err
    store = store_pb2_grpc.StoreStub(first.channel())
    list(store.ListSessions(st.ListSessionsRequest(), timeout=PATIENCE))


def test_a_second_home_needs_another_data_directory_and_socket_only(run, short_path):
    run("serve").ready()
    other = short_path / "x"
    arguments = ("--home", other, "--data-dir", other / "data", "--listen", f"unix:{other}/s")
    second = run("serve", *arguments).ready()
    assert second.printed[0] == f"flue-grpc listens on unix:{other}/s"


def test_after_a_kill_the_next_one_takes_over(run):
    first = run("serve").ready()
    store = store_pb2_grpc.StoreStub(first.channel())
    store.CreateSession(st.CreateSessionRequest(id="kept"), timeout=PATIENCE)
    first.kill()
    assert first.socket.exists()
    second = run("serve").ready()
    store = store_pb2_grpc.StoreStub(second.channel())
    answer = store.GetSession(st.GetSessionRequest(id="kept"), timeout=PATIENCE)
    assert answer.session.id == "kept"


def test_sigterm_drains(run):
    lines = [homes.user_line(0, "x" * 5000, number % 3600) for number in range(3000)]
    server = run("serve", "--drain-seconds", "40")
    homes.write_session(server.home, 0, lines)
    server.ready()
    channel = server.channel()
    index = agent_index_pb2_grpc.AgentIndexStub(channel)
    request = ai.ResolveRequest(tool="claude", id=homes.session_id(0))
    until = time.monotonic() + PATIENCE
    while True:
        try:
            index.Resolve(request, timeout=PATIENCE)
            break
        except grpc.RpcError:
            assert time.monotonic() < until
    # The client takes little until it reads on, so the call is still running.
    slow = grpc.insecure_channel(
        f"unix:{server.socket}",
        [("grpc.http2.bdp_probe", 0), ("grpc.use_local_subchannel_pool", 1)],
    )
    server.channels.append(slow)
    stream = agent_index_pb2_grpc.AgentIndexStub(slow).ReadTranscript(
        ai.ReadTranscriptRequest(tool="claude", id=homes.session_id(0))
    )
    count = len(next(stream).page.messages)
    server.signal(signal.SIGTERM)
    health = health_pb2_grpc.HealthStub(channel)
    until = time.monotonic() + PATIENCE
    # While it drains, health says NOT_SERVING at first and is refused like any call then.
    with suppress(grpc.RpcError):
        while health.Check(health_pb2.HealthCheckRequest()).status == 1:
            assert time.monotonic() < until
    with pytest.raises(grpc.RpcError) as caught:
        index.Resolve(request, timeout=PATIENCE)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    info = error_details_pb2.ErrorInfo()
    rpc_status.from_call(caught.value).details[0].Unpack(info)
    assert info.reason == "DRAINING"
    assert server.process.poll() is None
    count += sum(len(response.page.messages) for response in stream)
    assert count == 3000
    assert server.end()[0] == 0


def test_a_second_signal_ends_it_at_once(run):
    server = run("serve", "--drain-seconds", "1000", "--access-log", "off").ready()
    channel = server.channel()
    store = store_pb2_grpc.StoreStub(channel)
    store.CreateSession(st.CreateSessionRequest(id="s"), timeout=PATIENCE)
    messages = [st.Message(role="user", content="x" * 100_000)] * 20
    for _ in range(20):
        store.AppendMessages(
            st.AppendMessagesRequest(session_id="s", messages=messages), timeout=PATIENCE
        )
    slow = grpc.insecure_channel(
        f"unix:{server.socket}",
        [("grpc.http2.bdp_probe", 0), ("grpc.use_local_subchannel_pool", 1)],
    )
    server.channels.append(slow)
    stream = store_pb2_grpc.StoreStub(slow).ListMessages(st.ListMessagesRequest(session_id="s"))
    next(stream)
    server.signal(signal.SIGTERM)
    health = health_pb2_grpc.HealthStub(channel)
    until = time.monotonic() + PATIENCE
    while health.Check(health_pb2.HealthCheckRequest()).status == 1:
        assert time.monotonic() < until
    server.signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE) == 128 + signal.SIGTERM


def test_health_asks_the_server_that_runs(run, short_path):
    asked = run("health", "--timeout", "0.2")
    code, out, err = asked.end()
    assert (code, out) == (2, "")
    assert err == f"flue-grpc: no answer from unix:{asked.socket}; `flue-grpc serve` starts one\n"
    server = run("serve").ready()
    assert run("health").end() == (0, "SERVING\n", "")
    assert run("health", "flue.store.v1.Store").end() == (0, "SERVING\n", "")
    assert run("health", "nothing").end() == (1, "SERVICE_UNKNOWN\n", "")
    server.signal(signal.SIGTERM)
    server.end()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--listen", "unix-abstract:x"), "an abstract socket has no permissions"),
        (("--listen", "unix:/" + "x" * 107), "has at most 107 bytes, this one has 108"),
        (("--listen", "somewhere"), "is neither unix:PATH nor HOST:PORT"),
        (("--page-max", "x"), "--page-max: page_max must be a whole number"),
        (("--config", "/nowhere.toml"), "/nowhere.toml: no such file"),
        (("--data-dir", "/dev/null/x"), "/dev/null"),
    ],
)
def test_what_cannot_start_says_so_in_one_line(run, arguments, said):
    code, out, err = run("serve", *arguments).end()
    assert (code, out) == (2, "")
    assert err.startswith("flue-grpc: ")
    assert said in err
    assert err.count("\n") == 1


def test_tcp_without_credentials_is_served_only_when_insisted_on(run):
    server = run("serve", "--listen", "127.0.0.1:0", "--insecure-plaintext-tcp").ready()
    address = server.printed[0].removeprefix("flue-grpc listens on ")
    host, _, port = address.rpartition(":")
    assert host == "127.0.0.1"
    assert int(port) > 0
    assert server.printed[1].startswith(f"  grpcurl -plaintext {address} ")
    store = store_pb2_grpc.StoreStub(server.channel(address))
    list(store.ListSessions(st.ListSessionsRequest(), timeout=PATIENCE))


def test_a_port_that_is_taken_is_refused_and_no_socket_is_left(run, short_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        addresses = ("--listen", f"unix:{short_path}/s", "--listen", f"127.0.0.1:{port}")
        code, _, err = run("serve", *addresses, "--insecure-plaintext-tcp").end()
    assert code == 2
    assert err == f"flue-grpc: cannot listen on 127.0.0.1:{port}; is the address in use?\n"
    assert not (short_path / "s").exists()


def test_several_addresses(run, short_path):
    first, second = short_path / "a", short_path / "b"
    server = run("serve", "--listen", f"unix:{first}", "--listen", f"unix:{second}")
    lines = server.lines(4)
    assert lines[:2] == [
        f"flue-grpc listens on unix:{first}",
        f"flue-grpc listens on unix:{second}",
    ]
    for path in (first, second):
        store = store_pb2_grpc.StoreStub(server.channel(f"unix:{path}"))
        list(store.ListSessions(st.ListSessionsRequest(), timeout=PATIENCE))


def test_calls_are_logged_without_content_when_nobody_looks_on(run):
    server = run("serve", "--log-format", "json").ready()
    store = store_pb2_grpc.StoreStub(server.channel())
    store.CreateSession(st.CreateSessionRequest(id="secret", title="secret"), timeout=PATIENCE)
    with pytest.raises(grpc.RpcError):
        store.GetSession(st.GetSessionRequest(id="secret two"), timeout=PATIENCE)
    server.signal(signal.SIGTERM)
    code, _, err = server.end()
    assert code == 0
    assert err.count("\n") == 2
    assert "CreateSession" in err
    assert "NOT_FOUND" in err
    assert "secret" not in err


def test_many_clients_at_once(run):
    server = run("serve", "--access-log", "off").ready()
    failures = []

    def work(number):
        with grpc.insecure_channel(
            f"unix:{server.socket}", [("grpc.use_local_subchannel_pool", 1)]
        ) as channel:
            store = store_pb2_grpc.StoreStub(channel)
            try:
                for turn in range(10):
                    store.CreateSession(
                        st.CreateSessionRequest(id=f"s{number}-{turn}"), timeout=PATIENCE
                    )
            except grpc.RpcError as error:
                failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    store = store_pb2_grpc.StoreStub(server.channel())
    request = st.ListSessionsRequest()
    listed = [s.id for r in store.ListSessions(request, timeout=PATIENCE) for s in r.sessions]
    assert len(listed) == len(set(listed)) == 200


def test_on_a_terminal_the_first_sweep_is_shown_and_no_call_is_logged(run, short_path):
    home = short_path / "home"
    for number in range(300):
        lines = [homes.user_line(number, "x" * 2000, second) for second in range(100)]
        homes.write_session(home, number, lines)
    ours, theirs = os.openpty()
    server = run("serve", stderr=theirs)
    os.close(theirs)
    server.ready()
    index = agent_index_pb2_grpc.AgentIndexStub(server.channel())
    until = time.monotonic() + PATIENCE
    while True:
        responses = list(index.Snapshot(ai.SnapshotRequest(), timeout=PATIENCE))
        if not responses[0].building:
            break
        assert time.monotonic() < until
    server.signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE) == 0
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert b"\n" not in shown
    assert shown.endswith(b"\r\x1b[K")
    assert b"Snapshot" not in shown


def test_a_home_that_is_not_there_is_told(run, short_path):
    server = run("serve", "--home", short_path / "hom", "--log-format", "text").ready()
    server.signal(signal.SIGTERM)
    code, _, err = server.end()
    assert code == 0
    assert f"the home {short_path}/hom is not there: it has no transcripts" in err
