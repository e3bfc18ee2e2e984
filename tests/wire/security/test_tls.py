"""TCP with TLS: certificates made here, each rule seen from the outside."""

from __future__ import annotations

import datetime as dt
import json
import socket
import ssl
import subprocess

import grpc
import pytest
from cryptography import x509

from tests.wire.security.contract_calls import RPCS
from tests.wire.security.process import PROGRAM, is_serving, running

BY_NAME = {rpc.name: rpc for rpc in RPCS}
READ, WRITE = BY_NAME["ListSessions"], BY_NAME["CreateSession"]
DAY = dt.timedelta(days=1)
AGENT = x509.UniformResourceIdentifier("spiffe://mesh/agent")
VIEWER = x509.DNSName("viewer.example")


@pytest.fixture
def files(authority, tmp_path):
    authority.server().write(tmp_path, "server")
    (tmp_path / "clients.crt").write_bytes(authority.certificate)
    return tmp_path


@pytest.fixture
def with_token(files):
    pair = ["--tls-cert", files / "server.crt", "--tls-key", files / "server.key"]
    with running("--listen", "127.0.0.1:0", *pair) as product:
        yield product


@pytest.fixture
def mutual(files):
    pair = ["--tls-cert", files / "server.crt", "--tls-key", files / "server.key"]
    names = ["--tls-clients", "spiffe://mesh/agent=full", "--tls-clients", "viewer.example=read"]
    clients = ["--tls-client-ca", files / "clients.crt", *names]
    with running("--listen", "127.0.0.1:0", *pair, *clients) as product:
        yield product


def connect(product, authority, client=None):
    credentials = grpc.ssl_channel_credentials(
        authority.certificate,
        client.key if client else None,
        client.certificate if client else None,
    )
    options = [("grpc.use_local_subchannel_pool", 1)]
    return grpc.secure_channel(f"localhost:{product.port}", credentials, options)


def outcome(rpc, channel, **arguments):
    error = rpc.attempt(channel, rpc.request(), **arguments)[1]
    return "OK" if error is None else error.code().name


def shown(product):
    """The certificate that the server shows to a new connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection(("127.0.0.1", product.port), timeout=20) as plain,
        context.wrap_socket(plain) as secure,
    ):
        return x509.load_der_x509_certificate(secure.getpeercert(binary_form=True))


def test_tls_wants_a_token(with_token, authority):
    token = [("authorization", f"Bearer {with_token.token()}")]
    with connect(with_token, authority) as channel:
        assert outcome(READ, channel) == "UNAUTHENTICATED"
        assert outcome(WRITE, channel, metadata=token) == "OK"
        assert is_serving(channel)


def test_plaintext_does_not_get_in(with_token):
    with with_token.channel(f"localhost:{with_token.port}") as channel:
        token = [("authorization", f"Bearer {with_token.token()}")]
        assert outcome(READ, channel, metadata=token) == "UNAVAILABLE"


def test_clients_notice_a_server_of_another_authority(with_token, other_authority):
    with connect(with_token, other_authority) as channel:
        assert outcome(READ, channel) == "UNAVAILABLE"


def test_old_protocol_versions_are_refused(with_token):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSVersion"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSVersion"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with (
        socket.create_connection(("127.0.0.1", with_token.port), timeout=20) as plain,
        pytest.raises(ssl.SSLError),
    ):
        context.wrap_socket(plain)


def test_a_certificate_has_the_role_of_its_name(mutual, authority):
    with connect(mutual, authority, authority.issue("any", AGENT)) as channel:
        assert (outcome(READ, channel), outcome(WRITE, channel)) == ("OK", "OK")
    with connect(mutual, authority, authority.issue("any", VIEWER)) as channel:
        assert (outcome(READ, channel), outcome(WRITE, channel)) == ("OK", "PERMISSION_DENIED")
    mutual.logged("principal=spiffe://mesh/agent", "principal=viewer.example")


def test_failed_handshakes_do_not_break_the_form_of_the_log(files, authority):
    pair = ["--tls-cert", files / "server.crt", "--tls-key", files / "server.key"]
    clients = ["--tls-client-ca", files / "clients.crt", "--tls-clients", "*=read"]
    listen = ["--listen", "127.0.0.1:0", "--log-format", "json"]
    with running(*listen, *pair, *clients) as product:
        with connect(product, authority) as channel:
            assert outcome(READ, channel) == "UNAVAILABLE"
        with connect(product, authority, authority.issue("any", VIEWER)) as channel:
            assert outcome(READ, channel) == "OK"
        assert product.stop() == 0
        lines = [json.loads(line) for line in product.log.read_text().splitlines()]
    assert [line["principal"] for line in lines] == ["viewer.example"]


def test_another_name_is_refused_but_may_ask_for_health(mutual, authority):
    for client in (
        authority.issue("viewer.example"),
        authority.issue("any", x509.DNSName("sub.viewer.example")),
        authority.issue("any", x509.UniformResourceIdentifier("spiffe://mesh/agent/more")),
    ):
        with connect(mutual, authority, client) as channel:
            assert outcome(READ, channel) == "UNAUTHENTICATED"
            assert is_serving(channel)


@pytest.mark.parametrize(
    "name",
    [
        x509.DNSName("viewer.example\0.evil.org"),
        x509.UniformResourceIdentifier("spiffe://mesh/agent\0/more"),
        x509.RFC822Name("viewer.example"),
        x509.UniformResourceIdentifier("viewer.example"),
        x509.DNSName("spiffe://mesh/agent"),
    ],
)
def test_a_name_that_ends_early_or_is_of_another_kind_is_refused(mutual, authority, name):
    with connect(mutual, authority, authority.issue("any", name)) as channel:
        assert outcome(READ, channel) == "UNAUTHENTICATED"
        assert is_serving(channel)


def test_a_token_does_not_stand_in_for_a_certificate(mutual, authority):
    with connect(mutual, authority) as channel:
        token = [("authorization", "Bearer anything-anything-anything")]
        assert outcome(READ, channel, metadata=token) == "UNAVAILABLE"
    assert not mutual.tokens.exists()


def test_certificates_that_tls_refuses_do_not_get_in(mutual, authority, other_authority):
    strangers = [
        other_authority.issue("any", AGENT),
        authority.issue("any", AGENT, valid_from=-9 * DAY, valid_for=DAY),
        authority.issue("any", AGENT, valid_from=DAY),
    ]
    for client in strangers:
        with connect(mutual, authority, client) as channel:
            assert outcome(READ, channel) == "UNAVAILABLE"


def test_the_server_certificate_rotates_without_a_restart(with_token, authority, files):
    new = authority.server()
    serial = x509.load_pem_x509_certificate(new.certificate).serial_number
    token = [("authorization", f"Bearer {with_token.token()}")]
    with connect(with_token, authority) as channel:
        assert outcome(READ, channel, metadata=token) == "OK"
        before = shown(with_token)
        assert before.serial_number != serial
        # Half a rotation: a certificate whose key is not there yet.
        (files / "server.crt").write_bytes(new.certificate)
        assert shown(with_token) == before
        new.write(files, "server")
        assert shown(with_token).serial_number == serial
        # Connections that are open go on.
        assert outcome(READ, channel, metadata=token) == "OK"
    lines = with_token.logged("the TLS files changed and are in use")
    assert lines.count("the TLS files changed and cannot be used; the old ones stay") == 1
    assert lines.count("the TLS files changed and are in use") == 1


def test_client_authorities_rotate_without_a_restart(mutual, authority, other_authority, files):
    stranger = other_authority.issue("any", AGENT)
    with connect(mutual, authority, stranger) as channel:
        assert outcome(READ, channel) == "UNAVAILABLE"
    (files / "clients.crt").write_bytes(other_authority.certificate)
    with connect(mutual, authority, stranger) as channel:
        assert outcome(READ, channel) == "OK"
    with connect(mutual, authority, authority.issue("any", AGENT)) as channel:
        assert outcome(READ, channel) == "UNAVAILABLE"


def serve(tmp_path, *arguments):
    """Run a server that is to refuse its start; return what it says."""
    done = subprocess.run(
        [
            *(PROGRAM, "serve", "--home", tmp_path, "--data-dir", tmp_path / "data"),
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode not in (0, -9), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"])
def test_plaintext_beyond_loopback_is_refused_in_words(tmp_path, address):
    assert "other machines" in serve(tmp_path, "--listen", address)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tls-cert", "{files}/server.crt"], "go together"),
        (["--tls-cert", "{files}/none.crt", "--tls-key", "{files}/server.key"], "none.crt"),
        (["--tls-cert", "{files}/clients.crt", "--tls-key", "{files}/server.key"], "its key"),
        (["--tls-client-ca", "{files}/clients.crt", "--tls-clients", "a=full"], "needs tls_cert"),
        (["--tls-clients", "a=owner"], "a=owner"),
        (["--listen", "unix-abstract:flue"], "no permissions"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_in_words(files, tmp_path, arguments, words):
    given = [argument.format(files=files) for argument in arguments]
    listen = [] if "--listen" in given else ["--listen", "127.0.0.1:0"]
    assert words in serve(tmp_path, *listen, *given)


def test_behind_a_sidecar_plaintext_is_open_to_all_who_reach_it():
    with (
        running("--listen", "127.0.0.1:0", "--insecure-plaintext-tcp") as product,
        product.channel(f"127.0.0.1:{product.port}") as channel,
    ):
        assert outcome(WRITE, channel) == "OK"
        assert not product.tokens.exists()


def health(product, *arguments):
    return subprocess.run(
        [
            *(PROGRAM, "health", "--home", product.home, "--data-dir", product.data),
            *("--listen", f"127.0.0.1:{product.port}", *arguments),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_health_command_trusts_the_servers_own_certificate(with_token, files):
    pair = ["--tls-cert", files / "server.crt", "--tls-key", files / "server.key"]
    done = health(with_token, *pair)
    assert (done.returncode, done.stdout) == (0, "SERVING\n"), done.stderr


def test_the_health_command_says_where_it_cannot_ask(mutual, files):
    pair = ["--tls-cert", files / "server.crt", "--tls-key", files / "server.key"]
    clients = ["--tls-client-ca", files / "clients.crt", "--tls-clients", "a=read"]
    done = health(mutual, *pair, *clients)
    assert done.returncode == 2
    assert "demands a client certificate" in done.stderr
    socket_too = ["--listen", f"unix:{mutual.directory}/none"]
    assert "no answer from unix:" in health(mutual, *pair, *clients, *socket_too).stderr
