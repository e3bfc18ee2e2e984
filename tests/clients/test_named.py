"""The server that ``--server`` names: how it is written, and what is said when it is no use."""

from __future__ import annotations

from pathlib import Path

import pytest

from flue_grpc.cli import main
from flue_grpc.commands.named import address_of


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("unix:/run/s", "unix:/run/s"),
        ("unix:///run/s", "unix:/run/s"),
        ("unix:s", "unix:{here}/s"),
        ("/run/s", "unix:/run/s"),
        ("./s", "unix:{here}/s"),
        ("~/s", "unix:{home}/s"),
        ("localhost:7", "localhost:7"),
        ("http://localhost:7/", "localhost:7"),
        ("https://localhost:7", "localhost:7"),
        ("unix:", "unix:"),
        ("nonsense", "nonsense"),
    ],
)
def test_an_address_may_be_written_as_people_do(base, monkeypatch, text, address):
    monkeypatch.chdir(base)
    monkeypatch.setenv("HOME", "/home/dev")
    assert address_of(text) == address.format(here=Path.cwd(), home="/home/dev")


@pytest.mark.parametrize("form", ["unix:s", "./s", "{base}/s"])
def test_a_socket_is_reached_by_any_of_its_names(base, serving, capfd, monkeypatch, form):
    monkeypatch.chdir(base)
    with serving():
        assert main(["health", "--server", form.format(base=base)]) == 0
        assert main(["memory", "list", "--server", form.format(base=base)]) == 1
    assert capfd.readouterr() == ("SERVING\n", "")


@pytest.fixture
def secure(base, serving, authority):
    """A server over TLS on a port; the files of the authority and of a client of it."""
    certificate, key = authority.server().write(base, "server")
    (base / "ca.crt").write_bytes(authority.certificate)
    return lambda **trust: serving(
        "127.0.0.1:0", tls_cert=str(certificate), tls_key=str(key), **trust
    )


def said(capfd):
    """The last line: grpcio may say before it what it thinks of a handshake."""
    return capfd.readouterr().err.splitlines()[-1]


COMMANDS = [["memory", "list"], ["health"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_tls_is_hinted_at(secure, capfd, command):
    with secure() as server:
        [address] = map(str, server.addresses)
        assert main([*command, "--server", address]) == 2
    assert said(capfd) == (
        f"flue-grpc: no answer from {address} in plaintext; if it speaks TLS, use --tls or --ca FILE"
    )


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_plaintext_is_hinted_at(base, serving, authority, capfd, command):
    (base / "ca.crt").write_bytes(authority.certificate)
    with serving("127.0.0.1:0") as server:
        [address] = map(str, server.addresses)
        assert main([*command, "--server", address, "--ca", str(base / "ca.crt")]) == 2
    assert said(capfd).endswith("; if it speaks plaintext, leave --tls, --ca and --cert out")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_certificate_of_ones_own_is_hinted_at(base, secure, capfd, command):
    trust = {"tls_client_ca": str(base / "ca.crt"), "tls_clients": ["client.test=full"]}
    with secure(**trust) as server:
        flags = ["--server", str(server.addresses[0]), "--ca", str(base / "ca.crt")]
        assert main([*command, *flags]) == 2
    assert said(capfd).endswith("; if it demands certificates, use --cert FILE and --key FILE")


def test_health_asks_over_tls(base, secure, capfd):
    with secure() as server:
        flags = ["--server", str(server.addresses[0]), "--ca", str(base / "ca.crt")]
        assert main(["health", *flags]) == 0
        assert main(["health", "flue.store.v1.Store", *flags]) == 0
    assert capfd.readouterr().out == "SERVING\nSERVING\n"


def test_health_says_what_to_do(base, serving, capfd):
    data = ["--data-dir", str(base / "data")]
    assert main(["health", *data]) == 2
    assert said(capfd) == (
        f"flue-grpc: no answer from unix:{base}/data/flue.sock; `flue-grpc serve` starts one"
    )
    with serving(f"unix:{base}/elsewhere") as server:
        server.announce()
        assert main(["health", *data]) == 2
    assert said(capfd).endswith(
        f" serves this data directory: --server unix:{base}/elsewhere asks it"
    )
    assert main(["health", "--tls"]) == 2
    assert said(capfd) == "flue-grpc: --tls, --ca, --cert and --key go with --server"


def test_health_over_a_port_with_tls_hints_at_it(secure, capfd):
    with secure() as server:
        [address] = map(str, server.addresses)
        assert main(["health", "--listen", address]) == 2
    assert said(capfd) == (
        f"flue-grpc: no answer from {address}; if it speaks TLS, "
        f"use --server {address} with --tls or --ca FILE"
    )
