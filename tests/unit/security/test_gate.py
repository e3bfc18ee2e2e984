from __future__ import annotations

import grpc
import pytest

from flue_grpc.errors import ConfigError
from flue_grpc.security.authenticators import (
    CertificateAuthenticator,
    TokenAuthenticator,
    Trusting,
)
from flue_grpc.security.gate import Gate, TcpSettings, parse_client_roles
from flue_grpc.security.roles import Role


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


def test_plaintext_on_loopback_demands_a_token_that_is_made(tmp_path):
    gate = Gate(["127.0.0.1", "::1"], settings(tmp_path), print)
    assert gate.credentials() is None
    assert isinstance(gate.trust.plaintext, TokenAuthenticator)
    assert gate.trust.secure is None
    assert (tmp_path / "tokens").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "*", ""])
def test_plaintext_anywhere_else_is_refused_and_makes_no_token(tmp_path, host):
    with pytest.raises(ConfigError, match="can be reached from other machines"):
        Gate(["127.0.0.1", host], settings(tmp_path), print)
    assert not (tmp_path / "tokens").exists()


def test_behind_a_sidecar_plaintext_needs_no_credentials_and_makes_none(tmp_path):
    gate = Gate(["0.0.0.0"], settings(tmp_path, insecure_plaintext=True), print)
    assert gate.credentials() is None
    assert isinstance(gate.trust.plaintext, Trusting)
    assert not (tmp_path / "tokens").exists()


def test_tls_demands_a_token_on_any_address(tmp_path, pair):
    gate = Gate(["0.0.0.0"], settings(tmp_path, certificate=pair[0], key=pair[1]), print)
    assert isinstance(gate.credentials(), grpc.ServerCredentials)
    assert isinstance(gate.trust.secure, TokenAuthenticator)
    assert gate.trust.plaintext is None


def test_with_an_authority_for_clients_certificates_are_demanded_and_no_token(
    tmp_path, pair, client_ca
):
    chosen = settings(
        tmp_path,
        certificate=pair[0],
        key=pair[1],
        client_ca=client_ca,
        client_roles={"agent": Role.FULL},
    )
    gate = Gate(["0.0.0.0"], chosen, print)
    assert isinstance(gate.credentials(), grpc.ServerCredentials)
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
            Gate(["127.0.0.1"], settings(tmp_path, **fault), print)


def test_clients_are_named_with_their_roles():
    entries = ["spiffe://mesh/agent?x=1=full", "*=read"]
    assert parse_client_roles(entries) == {"spiffe://mesh/agent?x=1": Role.FULL, "*": Role.READ}


@pytest.mark.parametrize(
    "entries",
    [
        ["agent"],
        ["=full"],
        ["agent=owner"],
        ["agent=FULL"],
        ["::1=full", "0::1=read"],
        ["a=full", "a=read"],
    ],
)
def test_a_client_of_bad_form_is_refused(entries):
    with pytest.raises(ConfigError, match="tls_clients"):
        parse_client_roles(entries)
