from __future__ import annotations

import datetime as dt
import socket
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from flue_grpc import config
from flue_grpc.doctor import listening
from flue_grpc.doctor.findings import Level
from flue_grpc.security.tokens import create_token_file
from flue_grpc.server import Server

DAY = dt.timedelta(days=1)


@pytest.fixture
def short():
    with tempfile.TemporaryDirectory(prefix="d") as name:
        yield Path(name)


@pytest.fixture
def configuration(short):
    given = {"data_dir": str(short / "data"), "home": str(short / "home")}
    return config.combine(given, {"HOME": str(short)})


@pytest.fixture
def settings(configuration):
    return configuration.settings


def examine(settings, **changes):
    found = list(listening.addresses(replace(settings, **changes)))
    return [(finding.subject, finding.level, finding.text) for finding in found]


def test_no_server_listens_yet(settings, short):
    assert examine(settings) == [
        ("socket", Level.NOTE, f"{short}/data/flue.sock: no server listens")
    ]


def test_a_socket_that_was_left_behind(settings, short):
    (short / "data").mkdir()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(short / "data" / "flue.sock"))
    ((_, level, text),) = examine(settings)
    assert (level, "left behind" in text) == (Level.NOTE, True)


def test_something_else_in_the_sockets_place(settings, short):
    (short / "data").mkdir()
    (short / "data" / "flue.sock").touch()
    ((_, level, text),) = examine(settings)
    assert (level, "is not a socket" in text) == (Level.PROBLEM, True)


def test_a_server_that_answers(configuration, settings, short):
    server = Server(configuration)
    server.start()
    try:
        ((_, level, text),) = examine(settings)
    finally:
        server.stop()
    assert level is Level.OK
    assert text == f"{short}/data/flue.sock (mode 0600): Store SERVING, AgentIndex SERVING"


@pytest.mark.parametrize("listen", ["nonsense", "unix-abstract:x", "unix:" + "/x" * 60])
def test_an_address_that_cannot_be_used(settings, listen):
    ((subject, level, _),) = examine(settings, listen=(listen,))
    assert (subject, level) == ("address", Level.PROBLEM)


def test_tcp_on_loopback_wants_tokens(settings, short):
    first = examine(settings, listen=("127.0.0.1:1",))
    assert [(subject, level) for subject, level, _ in first] == [
        ("tcp", Level.OK),
        ("tokens", Level.NOTE),
    ]
    create_token_file(settings.token_path)
    *_, (subject, level, text) = examine(settings, listen=("127.0.0.1:1",))
    assert (subject, level) == ("tokens", Level.OK)
    assert text == f"{short}/data/tokens: default (full)"


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (f"full {'t' * 30} a\nrubbish\n", 0o600, "line 2 is not ROLE TOKEN NAME"),
        ("# none\n", 0o600, "has no token"),
        (f"full {'t' * 30} a\n", 0o644, "others may read"),
    ],
)
def test_a_token_file_that_wants_work(settings, content, mode, words):
    settings.token_path.parent.mkdir()
    settings.token_path.write_text(content)
    settings.token_path.chmod(mode)
    found = examine(settings, listen=("127.0.0.1:1",))
    bad = [text for subject, level, text in found if (subject, level) == ("tokens", Level.PROBLEM)]
    assert len(bad) == 1
    assert words in bad[0]
    assert "tttt" not in str(found)


def test_plaintext_beyond_loopback(settings):
    found = examine(settings, listen=("0.0.0.0:1",))
    assert found[0][:2] == ("tcp", Level.PROBLEM)
    found = examine(settings, listen=("0.0.0.0:1",), insecure_plaintext_tcp=True)
    assert [entry[:2] for entry in found] == [("tcp", Level.NOTE)]


def tls(settings, pair, **more):
    return examine(settings, listen=("0.0.0.0:1",), tls_cert=pair[0], tls_key=pair[1], **more)


def test_a_certificate_tells_how_long_it_lasts(settings, short, authority):
    long = authority.server().write(short, "long")
    found = tls(settings, long)
    assert [entry[:2] for entry in found] == [
        ("certificate", Level.NOTE),
        ("tcp", Level.OK),
        ("tokens", Level.NOTE),
    ]
    assert found[0][2].endswith("for localhost, 127.0.0.1, 7 days left")
    assert found[1][2] == "0.0.0.0:1: tokens are demanded"


def test_client_certificates_need_no_tokens(settings, short, authority):
    pair = authority.server().write(short, "s")
    (short / "ca").write_bytes(authority.certificate)
    found = tls(settings, pair, tls_client_ca=short / "ca", tls_clients=("a=full",))
    assert [entry[:2] for entry in found] == [("certificate", Level.NOTE), ("tcp", Level.OK)]
    assert found[1][2] == "0.0.0.0:1: client certificates are demanded"


def test_certificates_that_cannot_be_used(settings, short, authority):
    expired = authority.issue("x", valid_from=-9 * DAY, valid_for=DAY).write(short, "old")
    nameless = authority.issue("x").write(short, "nameless")
    for pair in (expired, nameless, (short / "none", short / "none")):
        assert tls(settings, pair)[0][:2] == ("certificate", Level.PROBLEM)


def test_settings_that_contradict_each_other(settings):
    found = examine(settings, listen=("127.0.0.1:1",), tls_cert=Path("/x"))
    assert [entry[:2] for entry in found] == [("tcp", Level.PROBLEM)]
