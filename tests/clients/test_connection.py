"""Which server a command talks to."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from cryptography import x509

from flue_grpc.agentindex import sweeper
from flue_grpc.cli import main
from flue_grpc.client import Client, Target, retry
from flue_grpc.commands import connection


@pytest.fixture
def marked(base):
    """Leave a memory entry that only the server's own Store has."""

    def write(address, **target):
        with Client(Target(address=address, **target)) as client:
            client.store.write_memory_entry("x", "of the server")

    return write


def listed(capfd, *flags):
    code = main(["memory", "list", "--scope", "x", *flags])
    captured = capfd.readouterr()
    return code, [line.split("\t")[4] for line in captured.out.splitlines()], captured.err


def test_the_server_of_a_data_directory_is_found_by_it(base, serving, marked, capfd):
    address = f"unix:{base}/data/flue.sock"
    with serving(address):
        marked(address)
        assert listed(capfd, "--data-dir", str(base / "data")) == (0, ["of the server"], "")
    # The socket is gone now, and the same Store is opened in this process.
    assert listed(capfd, "--data-dir", str(base / "data")) == (0, ["of the server"], "")


def test_the_default_socket_is_found(base, serving, marked, capfd, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(base))
    address = f"unix:{base}/flue-grpc/flue.sock"
    with serving(address):
        marked(address)
        assert listed(capfd) == (0, ["of the server"], "")


@pytest.mark.parametrize("name", ["a,b", "x" * 107])
def test_a_default_socket_that_no_server_can_have_is_no_obstacle(base, capfd, monkeypatch, name):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(base / name))
    assert listed(capfd) == (1, [], "")


def test_a_named_socket_with_a_comma_is_refused_in_words(base, capfd):
    for command in (["health"], ["sessions"]):
        assert main([*command, "--server", f"unix:{base}/a,b"]) == 2
        assert f"{base}/a,b: gRPC takes no comma" in capfd.readouterr().err


def test_a_server_is_named(base, serving, marked, capfd):
    with serving():
        marked(f"unix:{base}/s")
        assert listed(capfd, "--server", f"unix:{base}/s") == (0, ["of the server"], "")


def test_a_configured_tcp_server_is_found_with_its_token(base, serving, marked, capfd, monkeypatch):
    with serving("127.0.0.1:0") as server:
        [address] = map(str, server.addresses)
        server.announce()
        token = (base / "data/tokens").read_text().splitlines()[-1].split()[1]
        marked(address, token=token)
        monkeypatch.setenv("FLUE_GRPC_LISTEN", address)
        assert listed(capfd, "--data-dir", str(base / "data")) == (0, ["of the server"], "")


def test_tls_with_a_token_file(base, serving, marked, capfd, authority):
    certificate, key = authority.server().write(base, "server")
    (base / "ca.crt").write_bytes(authority.certificate)
    with serving("127.0.0.1:0", tls_cert=str(certificate), tls_key=str(key)) as server:
        [address] = map(str, server.addresses)
        flags = ["--server", address, "--ca", str(base / "ca.crt")]
        code, entries, err = listed(capfd, *flags)
        assert (code, entries) == (2, [])
        refusal, advice = err.splitlines()
        assert refusal.startswith("flue-grpc: UNAUTHENTICATED: ")
        assert advice == "flue-grpc: --token-file names a file with a token that the server knows"
        flags += ["--token-file", str(base / "data/tokens")]
        assert listed(capfd, *flags) == (1, [], "")


def test_mutual_tls_with_a_certificate_of_ones_own(base, serving, capfd, authority):
    certificate, key = authority.server().write(base, "server")
    mine, my_key = authority.issue("me", x509.DNSName("client.test")).write(base, "me")
    (base / "ca.crt").write_bytes(authority.certificate)
    trust = {"tls_client_ca": str(base / "ca.crt"), "tls_clients": ["client.test=full"]}
    files = {"tls_cert": str(certificate), "tls_key": str(key)}
    with serving("127.0.0.1:0", **files, **trust) as server:
        flags = ["--server", str(server.addresses[0]), "--ca", str(base / "ca.crt")]
        own = ["--cert", str(mine), "--key", str(my_key)]
        assert main(["memory", "add", "by certificate", "--scope", "x", *flags, *own]) == 0
        capfd.readouterr()
        assert listed(capfd, *flags, *own) == (0, ["by certificate"], "")
        assert listed(capfd, *flags)[0] == 2


def test_a_home_that_was_named_is_read_whatever_runs(base, serving, home, capfd):
    with serving(f"unix:{base}/nobody/flue.sock", home=str(base / "another")):
        assert main(["sessions", "--home", str(home)]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 3


def test_whoever_owns_the_index_is_asked(base, serving, home, capfd, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(base))
    with serving(f"unix:{base}/flue-grpc/flue.sock", data_dir=None) as server:
        while server.services.index.building:
            pass
        assert main(["sessions", "--home", str(home)]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--server", "nonsense"], "neither unix:/path nor host:port"),
        (["--server", "127.0.0.1:1", "--ca", "/absent"], "/absent cannot be read"),
        (["--server", "127.0.0.1:1", "--cert", "/dev/null"], "its private key go together"),
        (["--ca", "/dev/null"], "--tls, --ca, --cert and --key go with --server"),
        (["--tls"], "--tls, --ca, --cert and --key go with --server"),
        (["--server", "127.0.0.1:1", "--token-file", "/absent"], "cannot read the token file"),
    ],
)
def test_what_cannot_work_is_said_in_words(base, capfd, flags, words):
    code, _, err = listed(capfd, *flags)
    assert code == 2
    assert words in err


@pytest.fixture
def never_waits(monkeypatch):
    """Let no call be made a second time."""

    pause_after = retry.Backoff.pause_after

    def fail(backoff, error):
        seconds = pause_after(backoff, error)
        pytest.fail(f"waits for {seconds} s to try again")

    monkeypatch.setattr(retry.Backoff, "pause_after", fail)


@pytest.mark.parametrize("command", [["sessions"], ["search", "x"], ["memory", "list"]])
def test_a_named_server_that_does_not_run_is_tried_once(base, capfd, never_waits, command):
    (base / "left-over").touch()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    for address in (f"unix:{base}/missing", f"unix:{base}/left-over", f"127.0.0.1:{port}"):
        assert main([*command, "--server", address]) == 2
        assert capfd.readouterr() == (
            "", f"flue-grpc: no answer from {address}; does a server run there?\n"
        )  # fmt: skip


def test_a_certificate_that_is_not_trusted_is_told(base, serving, capfd, authority, never_waits):
    certificate, key = authority.server().write(base, "server")
    (base / "another.crt").write_bytes(type(authority)("another").certificate)
    with serving("127.0.0.1:0", tls_cert=str(certificate), tls_key=str(key)) as server:
        [address] = map(str, server.addresses)
        code, _, err = listed(capfd, "--server", address, "--ca", str(base / "another.crt"))
    assert code == 2
    said = err.splitlines()[-1]
    assert said.startswith(f"flue-grpc: no answer from {address} over TLS: ")
    assert "CERTIFICATE_VERIFY_FAILED" in said
    assert said.endswith("; --ca FILE names the root of its certificate")


@pytest.fixture
def held(monkeypatch):
    """Hold back every sweep that begins from now on."""
    gate = threading.Event()
    plain = sweeper.discover

    def hold():
        def discover(*arguments):
            gate.wait(20)
            return plain(*arguments)

        monkeypatch.setattr(sweeper, "discover", discover)
        return gate

    yield hold
    gate.set()


@pytest.fixture
def swept(serving, home):
    """A server whose next sweep is demanded by the test alone."""
    with serving(home=str(home), sweep_interval_seconds=3600.0) as server:
        while server.services.index.building:
            pass
        yield server


def test_a_list_waits_for_a_sweep_that_is_over_in_a_moment(
    swept, held, pi_session, capfd, monkeypatch
):
    gate, sleep = held(), time.sleep
    monkeypatch.setattr(connection.time, "sleep", lambda seconds: gate.set() or sleep(seconds))
    pi_session("new", "what is new")
    swept.services.index._sweeper.demand()
    assert main(["sessions", "--server", str(swept.addresses[0])]) == 0
    listed = capfd.readouterr()
    assert "what is new" in listed.out
    assert len(listed.out.splitlines()) == 4
    assert "still being read" not in listed.err


def test_a_list_beside_a_long_sweep_says_that_there_may_be_more(swept, held, capfd, monkeypatch):
    monkeypatch.setattr(connection, "_SETTLE_SECONDS", 0.05)
    held()
    swept.services.index._sweeper.demand()
    assert main(["sessions", "--server", str(swept.addresses[0])]) == 0
    listed = capfd.readouterr()
    assert len(listed.out.splitlines()) == 3
    assert "transcripts are still being read: there may be more" in listed.err
