"""The Python client against a real server in this process."""

from __future__ import annotations

import threading

import grpc
import pytest
from cryptography import x509

from flue.store.v1 import store_pb2 as pb
from flue_grpc.cli import main
from flue_grpc.client import CallError, Client, RetryPolicy, Target, connect

PATIENT = RetryPolicy(attempts=200, first_wait=0.01, longest_wait=0.05)
MIB = 1024 * 1024


@pytest.fixture
def target(base):
    return Target(address=f"unix:{base}/s")


def test_a_message_larger_than_grpc_takes_by_itself(target, serving):
    content = "x" * (31 * MIB)
    with serving(), Client(target) as client:
        session = client.store.create_session(title="large")
        client.store.append_message(session.id, pb.Message(role="user", content=content))
        [message] = client.store.list_messages(session.id)
    assert message.content == content


def test_a_follow_outlives_the_server(target, serving):
    def say(number):
        with Client(target, retry=PATIENT) as writer:
            writer.store.append_message("ses", pb.Message(role="user", content=str(number)))

    with serving(), Client(target) as client:
        client.store.create_session("ses")
        say(1)
    with Client(target, retry=PATIENT) as client:
        with serving():
            follow = iter(client.store.list_messages("ses", follow=True))
            assert next(follow).content == "1"
            say(2)
            assert next(follow).content == "2"
        with serving():
            say(3)
            assert next(follow).content == "3"
            follow.close()


def test_a_write_waits_for_a_server_that_comes_back(target, serving):
    with serving(), Client(target) as client:
        client.store.create_session("ses")
    made = []
    with Client(target, retry=PATIENT) as client:
        message = pb.Message(role="user", content="while away")
        writer = threading.Thread(
            target=lambda: made.append(client.store.append_message("ses", message))
        )
        writer.start()
        with serving():
            writer.join(60)
            assert [m.content for m in client.store.list_messages("ses")] == ["while away"]
    assert [m.content for m in made] == ["while away"]


def test_many_pages_are_one_list(target, serving):
    with serving(), Client(target) as client:
        client.store.create_session("ses")
        drafts = [pb.Message(role="user", content=str(n)) for n in range(1000)]
        for _ in range(3):
            client.store.append_messages("ses", drafts)
        listed = client.store.list_messages("ses")
        assert [int(m.content) for m in listed] == [*range(1000)] * 3
        assert len(list(client.store.list_messages("ses", limit=2500))) == 2500
        found = client.store.search_messages("7", window=0, limit=None)
        assert len(list(found)) == 3
        assert found.last.next_page_token == ""


def test_health(target, serving):
    with serving(), Client(target) as client:
        while not client.is_serving():
            pass
        assert client.is_serving("flue.store.v1.Store")
        with pytest.raises(CallError) as failure:
            client.is_serving("none")
    assert failure.value.code is grpc.StatusCode.NOT_FOUND


def test_no_server_fails_after_the_attempts(target):
    twice = RetryPolicy(attempts=2, first_wait=0.001)
    with Client(target, retry=twice) as client, pytest.raises(CallError) as failure:
        client.store.get_session("x")
    assert failure.value.code is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("name", ["a%41b", "a#b", "a?b", "a b", "\u00e9", "a\udcffb"])
def test_a_socket_of_any_name_is_reached(base, serving, capfd, name):
    address = f"unix:{base}/{name}/s"
    with serving(address) as server, connect(address) as client:
        assert client.is_serving()
        server.announce()
        assert main(["memory", "list", "--server", address]) == 1
        assert main(["memory", "list", "--data-dir", str(base / "data")]) == 1
    assert capfd.readouterr().err == ""


def test_connect_finds_the_default_socket(base, monkeypatch, serving):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(base))
    with serving(f"unix:{base}/flue-grpc/flue.sock"), connect() as client:
        assert list(client.store.list_sessions()) == []


def test_tls_with_a_token(base, authority, serving):
    certificate, key = authority.server().write(base, "server")
    with serving("127.0.0.1:0", tls_cert=str(certificate), tls_key=str(key)) as server:
        [address] = server.addresses
        token = (base / "data/tokens").read_text().splitlines()[-1].split()[1]
        trusted = {"address": str(address), "root_certificates": authority.certificate}
        with Client(Target(token=token, **trusted)) as client:
            assert client.store.create_session("ses").id == "ses"
        with Client(Target(token="wrong", **trusted)) as client:
            with pytest.raises(CallError) as failure:
                client.store.get_session("ses")
            assert failure.value.reason == "UNAUTHENTICATED"


def test_mutual_tls(base, authority, serving):
    certificate, key = authority.server().write(base, "server")
    (base / "ca.crt").write_bytes(authority.certificate)
    mine = authority.issue("me", x509.DNSName("client.test"))
    settings = {
        "tls_cert": str(certificate),
        "tls_key": str(key),
        "tls_client_ca": str(base / "ca.crt"),
        "tls_clients": ["client.test=full"],
    }
    with serving("127.0.0.1:0", **settings) as server:
        [address] = server.addresses
        target = Target(
            address=str(address),
            root_certificates=authority.certificate,
            certificate=mine.certificate,
            private_key=mine.key,
        )
        with Client(target) as client:
            assert client.store.create_session("ses").id == "ses"
