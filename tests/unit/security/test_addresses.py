from __future__ import annotations

import socket

import pytest

from flue_grpc.security import addresses


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]"])
def test_loopback_literals(host):
    assert addresses.is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "*", "0.0.0.0", "::", "[::]", "10.0.0.1", "192.0.2.1", "127.0.0.1.", "a..b"]
)
def test_everything_else_is_not(host):
    assert not addresses.is_loopback(host)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (["127.0.0.1", "::1"], True),
        (["127.0.0.1", "192.0.2.7"], False),
        (["fe80::1%eth0"], False),
        ([], False),
    ],
)
def test_a_name_is_loopback_when_all_its_addresses_are(monkeypatch, found, expected):
    answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in found]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_kw: answer)
    assert addresses.is_loopback("box.example") is expected


def test_a_name_that_cannot_be_resolved_is_not(monkeypatch):
    def fail(*_args, **_kw):
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert not addresses.is_loopback("box.example")
