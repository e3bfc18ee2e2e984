from __future__ import annotations

from concurrent import futures

import grpc
import pytest

from flue_grpc.errors import ConfigError
from flue_grpc.security.authenticators import (
    CertificateAuthenticator,
    TokenAuthenticator,
    Trusting,
)
from flue_grpc.security.gate import Gate, TcpSettings
from flue_grpc.security.roles import Role


@pytest.fixture
def server():
    server = grpc.server(futures.ThreadPoolExecutor(1), options=[("grpc.so_reuseport", 0)])
    yield server
    server.stop(None)


@pytest.fixture
def pair(authority, tmp_path):
    return authority.server().write(tmp_path, "server")


@pytest.fixture
def client_ca(authority, tmp_path):
    path = tmp_path / "clients.crt"
    path.write_bytes(authority.certificate)
    return path


def settings(tmp_path, **more):
    return TcpSettings(tmp_path / "tokens", **more)


def test_plaintext_on_loopback_demands_a_token_that_is_made(tmp_path, server):
    gate = Gate(settings(tmp_path), print)
    assert gate.bind(server, "127.0.0.1", 0) > 0
    assert isinstance(gate.trust.plaintext, TokenAuthenticator)
    assert gate.trust.secure is None
    assert (tmp_path / "tokens").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "*", ""])
def test_plaintext_anywhere_else_is_refused(tmp_path, server, host):
    with pytest.raises(ConfigError, match="can be reached from other machines"):
        Gate(settings(tmp_path), print).bind(server, host, 0)


def test_behind_a_sidecar_plaintext_needs_no_credentials_and_makes_none(tmp_path, server):
    gate = Gate(settings(tmp_path, insecure_plaintext=True), print)
    assert gate.bind(server, "0.0.0.0", 0) > 0
    assert isinstance(gate.trust.plaintext, Trusting)
    assert not (tmp_path / "tokens").exists()


def test_tls_demands_a_token_on_any_address(tmp_path, server, pair):
    gate = Gate(settings(tmp_path, certificate=pair[0], key=pair[1]), print)
    assert gate.bind(server, "0.0.0.0", 0) > 0
    assert isinstance(gate.trust.secure, TokenAuthenticator)
    assert gate.trust.plaintext is None


def test_with_an_authority_for_clients_certificates_are_demanded_and_no_token(
    tmp_path, server, pair, client_ca
):
    chosen = settings(
        tmp_path,
        certificate=pair[0],
        key=pair[1],
        client_ca=client_ca,
        client_roles={"agent": Role.FULL},
    )
    gate = Gate(chosen, print)
    assert gate.bind(server, "127.0.0.1", 0) > 0
    assert isinstance(gate.trust.secure, CertificateAuthenticator)
    assert not (tmp_path / "tokens").exists()


def test_settings_that_contradict_each_other_are_refused(tmp_path, pair, client_ca):
    certificate, key = pair
    roles = {"agent": Role.FULL}
    faults = [
        {"certificate": certificate},
        {"key": key},
        {"client_ca": client_ca, "client_roles": roles},
        {"certificate": certificate, "key": key, "client_ca": client_ca},
        {"certificate": certificate, "key": key, "client_roles": roles},
        {"certificate": certificate, "key": key, "insecure_plaintext": True},
    ]
    for fault in faults:
        with pytest.raises(ConfigError):
            Gate(settings(tmp_path, **fault), print)


def test_a_taken_port_is_told_in_words(tmp_path, server):
    gate = Gate(settings(tmp_path), print)
    port = gate.bind(server, "127.0.0.1", 0)
    other = grpc.server(futures.ThreadPoolExecutor(1), options=[("grpc.so_reuseport", 0)])
    with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
        gate.bind(other, "127.0.0.1", port)


def test_an_ipv6_address_is_bound(tmp_path, server):
    assert Gate(settings(tmp_path), print).bind(server, "::1", 0) > 0
