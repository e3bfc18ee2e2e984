"""The sidecar's configuration, run by a real Envoy in front of a server that fails on order."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import tempfile
import time
from collections import Counter
from concurrent import futures
from pathlib import Path

import grpc
import pytest
import yaml
from cryptography import x509
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from flue_grpc.security.roles import READ_METHODS
from tests.tools import packaged, tool
from tests.waiting import wait_until

DEPLOY = Path(__file__).parents[2] / "deploy" / "kubernetes"
AGENT = x509.DNSName("agent.flue.svc")
WORKLOAD = x509.UniformResourceIdentifier("spiffe://cluster.local/ns/flue/sa/viewer")
READS = sorted(method for method in READ_METHODS if method.startswith("/flue."))
WRITE = "/flue.store.v1.Store/AppendMessage"


class Failing(grpc.GenericRpcHandler):
    """Answers UNAVAILABLE as often as told, then OK; counts the attempts per method."""

    def __init__(self):
        self.attempts = Counter()
        self.failures = 0

    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(
            lambda _request, context: self.answer(details.method, context)
        )

    def answer(self, method, context):
        self.attempts[method] += 1
        if self.attempts[method] <= self.failures:
            context.abort(grpc.StatusCode.UNAVAILABLE, "on order")
        return b""


class AdminConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def admin(directory, path):
    connection = AdminConnection(str(directory / "admin.sock"))
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


def until(condition, what):
    """Poll a condition, which may raise OSError while it is not ready to be asked."""

    def asked():
        try:
            return condition()
        except OSError:
            return None

    return wait_until(asked, tell=lambda: f"{what} did not happen")


@pytest.fixture
def directory():
    with tempfile.TemporaryDirectory(prefix="e") as name:
        yield Path(name)


@pytest.fixture
def backend(directory):
    handler = Failing()
    server = grpc.server(futures.ThreadPoolExecutor(4), [handler])
    health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), server)
    server.add_insecure_port(f"unix:{directory}/flue.sock")
    server.start()
    yield handler
    server.stop(None).wait()


def mount_secret(directory, authority, server):
    """Lay the files as Kubernetes does: a directory behind a symlink, swapped at once."""
    tls = directory / "tls"
    tls.mkdir(exist_ok=True)
    version = tls / f"..{time.monotonic_ns()}"
    version.mkdir()
    (version / "tls.crt").write_bytes(server.certificate)
    (version / "tls.key").write_bytes(server.key)
    (version / "ca.crt").write_bytes(authority.certificate)
    (tls / "..new").symlink_to(version.name)
    (tls / "..new").rename(tls / "..data")
    for name in ("tls.crt", "tls.key", "ca.crt"):
        if not (tls / name).is_symlink():
            (tls / name).symlink_to(f"..data/{name}")


def localise(directory):
    """Write the configuration with this test's directories, and ports of the kernel's choice."""
    places = {
        "/etc/flue-tls": f"{directory}/tls",
        "/etc/envoy": str(directory),
        "/run/envoy": str(directory),
        "/run/flue-grpc/socket": str(directory),
        "0.0.0.0": "127.0.0.1",
        "8443": "0",
        "8081": "0",
    }
    for name in ("envoy.yaml", "server-secret.yaml", "clients-secret.yaml"):
        text = (DEPLOY / name).read_text()
        for old, new in places.items():
            text = text.replace(old, new)
        (directory / name).write_text(text)


@pytest.fixture
def envoy(directory, backend, authority):
    """The ports of a running Envoy by listener name."""
    mount_secret(directory, authority, authority.server())
    localise(directory)
    command = [packaged("envoy"), "--config-path", directory / "envoy.yaml", "--concurrency", "1"]
    quiet = ["--disable-hot-restart", "--log-level", "warn", "--log-path", directory / "log"]
    process = subprocess.Popen([*command, *quiet])
    try:
        until(lambda: admin(directory, "/ready") == b"LIVE\n", "Envoy's start")
        listeners = json.loads(admin(directory, "/listeners?format=json"))["listener_statuses"]
        yield {
            listener["name"]: listener["local_address"]["socket_address"]["port_value"]
            for listener in listeners
        }
    finally:
        process.terminate()
        process.wait(timeout=30)


def connect(port, authority, client=None):
    credentials = grpc.ssl_channel_credentials(
        authority.certificate,
        client.key if client else None,
        client.certificate if client else None,
    )
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
    return grpc.secure_channel(f"localhost:{port}", credentials, options)


@pytest.fixture
def channel(envoy, authority):
    with connect(envoy["mesh"], authority, authority.issue("agent", AGENT)) as channel:
        yield channel


def call(channel, method):
    return channel.unary_unary(method)(b"", timeout=20)


@pytest.mark.parametrize("name", ["envoy.yaml", "server-secret.yaml", "clients-secret.yaml"])
def test_the_files_are_in_the_config_map(name):
    kustomization = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())
    (generated,) = kustomization["configMapGenerator"]
    assert name in generated["files"]


def test_envoy_finds_no_fault_with_the_configuration(directory, authority):
    mount_secret(directory, authority, authority.server())
    localise(directory)
    command = [packaged("envoy"), "--mode", "validate", "-c", directory / "envoy.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "warning" in done.stderr.lower()) == (0, False), done.stderr


@pytest.mark.parametrize("method", READS)
def test_reads_are_tried_again(channel, backend, method):
    backend.failures = 2
    call(channel, method)
    assert backend.attempts == {method: 3}


def test_writes_never_are(channel, backend):
    backend.failures = 1
    with pytest.raises(grpc.RpcError) as caught:
        call(channel, WRITE)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert backend.attempts == {WRITE: 1}


def test_reads_are_given_up_after_four_attempts(channel, backend):
    backend.failures = 9
    with pytest.raises(grpc.RpcError) as caught:
        call(channel, READS[0])
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert backend.attempts == {READS[0]: 4}


def test_every_allowed_name_gets_in(envoy, authority):
    for name in (AGENT, WORKLOAD):
        with connect(envoy["mesh"], authority, authority.issue("client", name)) as channel:
            call(channel, WRITE)


def test_nobody_else_does(envoy, authority, other_authority, backend):
    strangers = [
        None,
        authority.issue("agent.flue.svc"),
        authority.issue("client", x509.DNSName("other.flue.svc")),
        other_authority.issue("client", AGENT),
    ]
    for client in strangers:
        with connect(envoy["mesh"], authority, client) as channel:
            with pytest.raises(grpc.RpcError) as caught:
                call(channel, READS[0])
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert backend.attempts == {}


def test_the_probes_reach_health_and_nothing_else(envoy, backend):
    with grpc.insecure_channel(f"localhost:{envoy['probes']}") as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(), timeout=20
        )
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.RpcError) as caught:
            call(channel, READS[0])
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert backend.attempts == {}


def test_a_new_certificate_is_shown_without_a_restart(envoy, directory, authority):
    def shown():
        pem = subprocess.run(
            [tool("openssl"), "s_client", "-connect", f"localhost:{envoy['mesh']}"],
            input=b"",
            capture_output=True,
            check=False,
        ).stdout
        return x509.load_pem_x509_certificate(pem[pem.index(b"-----BEGIN") :]).serial_number

    new = authority.server()
    serial = x509.load_pem_x509_certificate(new.certificate).serial_number
    assert shown() != serial
    mount_secret(directory, authority, new)
    until(lambda: shown() == serial, "the rotation")
