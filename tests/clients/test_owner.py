"""A server that listens elsewhere is found by the locks that it holds."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from flue_grpc.cli import main
from flue_grpc.client import Client, Target
from flue_grpc.commands import connection


@pytest.fixture
def data(base):
    return ["--data-dir", str(base / "data")]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Let no command wait for the files of another process."""
    monkeypatch.setattr(connection, "_OWNER_SECONDS", 0.0)


def test_its_socket_is_found_for_the_store_and_for_transcripts(base, serving, home, data, capfd):
    with serving(f"unix:{base}/elsewhere") as server:
        server.announce()
        with Client(Target(address=f"unix:{base}/elsewhere")) as client:
            client.store.write_memory_entry("x", "of the server")
        assert main(["memory", "list", "--scope", "x", *data]) == 0
        assert "of the server" in capfd.readouterr().out
        while server.services.index.building:
            pass
        assert main(["sessions", *data, "--home", str(home)]) == 0
        assert len(capfd.readouterr().out.splitlines()) == 3
    assert (base / "data" / "lock").read_bytes() == b""


def test_a_home_alone_names_the_index_of_its_server(base, serving, home, capfd):
    with serving(f"unix:{base}/elsewhere", data_dir=None) as server:
        server.announce()
        while server.services.index.building:
            pass
        assert main(["sessions", "--home", str(home)]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 3


def test_a_port_is_found_with_the_token_of_the_data_directory(base, serving, data, capfd):
    with serving("127.0.0.1:0") as server:
        server.announce()
        assert main(["memory", "add", "by port", "--scope", "x", *data]) == 0
        capfd.readouterr()
        token = (base / "data/tokens").read_text().splitlines()[-1].split()[1]
        with Client(Target(address=str(server.addresses[0]), token=token)) as client:
            assert [e.content for e in client.store.recent_memory(["x"])] == ["by port"]


def test_one_over_tls_is_told_with_what_it_wants(base, serving, data, capfd, authority):
    certificate, key = authority.server().write(base, "server")
    with serving("127.0.0.1:0", tls_cert=str(certificate), tls_key=str(key)) as server:
        server.announce()
        [address] = server.addresses
        assert main(["memory", "list", *data]) == 2
        # grpcio may say on standard error what it thinks of the handshake.
        assert capfd.readouterr().err.endswith(
            f"flue-grpc: a server runs at {address} (process {os.getpid()}); "
            f"use --server {address} with --ca FILE, and with --token-file FILE, "
            "or --cert FILE and --key FILE\n"
        )


def test_an_owner_that_serves_nowhere_is_named(base, serving, data, capfd):
    with serving(f"unix:{base}/elsewhere"):
        assert main(["memory", "list", *data]) == 2
    assert capfd.readouterr().err == (
        f"flue-grpc: {base}/data/lock is locked by process {os.getpid()}; stop it first\n"
    )


@pytest.mark.parametrize("command", [["import", "-"], ["check", "--repair"], ["restore"]])
def test_commands_that_need_the_store_alone_name_its_server(base, serving, data, capfd, command):
    with serving(f"unix:{base}/elsewhere") as server:
        copy = str(base / "copy")
        assert main(["backup", copy, *data]) == 0
        server.announce()
        source = [copy] if command == ["restore"] else []
        assert main([*command, *source, *data]) == 2
    assert capfd.readouterr().err == (
        f"flue-grpc: {base}/data/lock is locked by process {os.getpid()}, "
        f"the server at unix:{base}/elsewhere; stop it first\n"
    )


def test_a_second_server_is_told_who_the_first_is_and_what_to_do(base, serving, home, data):
    listen = ["--home", str(home), "--listen", f"unix:{base}/second"]
    with serving(f"unix:{base}/elsewhere") as server:
        server.announce()
        second = subprocess.run(
            [sys.executable, "-m", "flue_grpc", "serve", *data, *listen],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert (second.returncode, second.stdout) == (2, "")
    assert second.stderr == (
        f"flue-grpc: {base}/data/lock is locked by process {os.getpid()}, "
        f"the server at unix:{base}/elsewhere; stop it first, "
        "or choose another --data-dir and --listen\n"
    )


def test_serve_announces_itself(base, home, data, capfd):
    """A server with a socket of its own choice is found by its data directory alone."""
    listen = ["--home", str(home), "--listen", f"unix:{base}/elsewhere"]
    with subprocess.Popen(
        [sys.executable, "-m", "flue_grpc", "serve", *data, *listen],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout.readline() == f"flue-grpc listens on unix:{base}/elsewhere\n"
            assert main(["memory", "add", "to the server", "--scope", "x", *data]) == 0
        finally:
            process.terminate()
        assert process.wait(timeout=60) == 0
    capfd.readouterr()
    assert main(["memory", "list", "--scope", "x", *data]) == 0
    assert "to the server" in capfd.readouterr().out
