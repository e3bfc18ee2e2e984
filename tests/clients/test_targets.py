from __future__ import annotations

import pytest

from flue_grpc.client import Client, Target
from flue_grpc.client.target import read_token
from flue_grpc.errors import ConfigError


@pytest.mark.parametrize(
    "address", ["unix:/run/x.sock", "127.0.0.1:7000", "[::1]:7000", "localhost:1", "example.test:1"]
)
def test_addresses_that_can_work(address):
    Target(address=address).check()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("", "neither unix:/path nor host:port"),
        ("localhost", "neither unix:/path nor host:port"),
        ("localhost:http", "neither unix:/path nor host:port"),
        (":7000", "neither unix:/path nor host:port"),
        ("unix:relative", "not absolute"),
        ("unix:/" + "x" * 107, "at most 107 bytes"),
        ("unix:/run/a,b", "no comma"),
        ("unix:/run/a\0b", "has no path"),
    ],
)
def test_addresses_that_cannot(address, words):
    with pytest.raises(ConfigError, match=words):
        Client(Target(address=address))


@pytest.mark.parametrize(
    ("address", "uri"),
    [
        ("unix:/run/a b%41#?\u00e9\udcff", "unix:/run/a%20b%2541%23%3F%C3%A9%FF"),
        ("unix:///run/x", "unix:/run/x"),
        ("[::1]:7000", "[::1]:7000"),
    ],
)
def test_grpc_gets_a_uri(address, uri):
    assert Target(address=address).uri == uri


def test_a_token_leaves_this_machine_only_over_tls():
    with pytest.raises(ConfigError, match=r"192\.0\.2\.1 only over TLS"):
        Target(address="192.0.2.1:7000", token="t").check()
    Target(address="192.0.2.1:7000", token="t", tls=True).check()
    Target(address="192.0.2.1:7000", token="t", root_certificates=b"pem").check()
    Target(address="127.0.0.2:7000", token="t").check()
    Target(address="[::1]:7000", token="t").check()
    Target(address="unix:/x", token="t").check()


def test_a_certificate_means_tls_and_needs_its_key():
    target = Target(address="192.0.2.1:7000", token="t", certificate=b"pem", private_key=b"pem")
    target.check()
    assert target.is_secure
    for half in ({"certificate": b"pem"}, {"private_key": b"pem"}):
        with pytest.raises(ConfigError, match="its private key go together"):
            Target(address="127.0.0.1:7000", **half).check()


@pytest.mark.parametrize("token", ["a\nb", "\u00fc", "\ud800", "a\0"])
def test_a_token_that_no_header_can_carry(token):
    with pytest.raises(ConfigError, match="a token is printable ASCII"):
        Target(address="unix:/x", token=token).check()


def test_a_token_is_read_from_either_kind_of_file(tmp_path):
    file = tmp_path / "tokens"
    file.write_text("# comment\n\nfull abc-def default\nread other second\n")
    assert read_token(file) == "abc-def"
    file.write_text("just-a-token\n")
    assert read_token(file) == "just-a-token"
    file.write_text("# nothing\n")
    with pytest.raises(ConfigError, match="no token"):
        read_token(file)
    with pytest.raises(ConfigError, match="cannot read"):
        read_token(tmp_path / "absent")
