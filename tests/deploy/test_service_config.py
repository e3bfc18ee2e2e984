"""The service config for clients, as grpcio understands it."""

from __future__ import annotations

import json
from collections import Counter
from concurrent import futures
from pathlib import Path

import grpc
import pytest

from flue_grpc.security.roles import READ_METHODS

CONFIG = Path(__file__).parents[2] / "deploy" / "client-service-config.json"
READS = sorted(method for method in READ_METHODS if method.startswith("/flue."))
WRITE = "/flue.store.v1.Store/AppendMessage"


class Failing(grpc.GenericRpcHandler):
    """Answers each method with a status as often as told, then OK."""

    def __init__(self):
        self.attempts = Counter()
        self.failures = 0
        self.code = grpc.StatusCode.UNAVAILABLE

    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(
            lambda _request, context: self.answer(details.method, context)
        )

    def answer(self, method, context):
        self.attempts[method] += 1
        if self.attempts[method] <= self.failures:
            context.abort(self.code, "on order")
        return b""


@pytest.fixture
def failing(tmp_path):
    handler = Failing()
    server = grpc.server(futures.ThreadPoolExecutor(2), [handler])
    handler.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield handler
    server.stop(None).wait()


@pytest.fixture
def channel(failing):
    options = [
        ("grpc.service_config", CONFIG.read_text()),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    with grpc.insecure_channel(f"127.0.0.1:{failing.port}", options) as channel:
        yield channel


def call(channel, method):
    return channel.unary_unary(method)(b"", timeout=20)


@pytest.mark.parametrize("method", READS)
def test_reads_are_tried_again(channel, failing, method):
    failing.failures = 1
    call(channel, method)
    assert failing.attempts == {method: 2}


def test_a_read_is_tried_four_times_at_most(channel, failing):
    failing.failures = 9
    with pytest.raises(grpc.RpcError) as caught:
        call(channel, READS[0])
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert failing.attempts == {READS[0]: 4}


@pytest.mark.parametrize(
    ("method", "code"),
    [(WRITE, grpc.StatusCode.UNAVAILABLE), (READS[0], grpc.StatusCode.RESOURCE_EXHAUSTED)],
)
def test_writes_and_other_failures_are_not(channel, failing, method, code):
    failing.failures, failing.code = 1, code
    with pytest.raises(grpc.RpcError) as caught:
        call(channel, method)
    assert caught.value.code() is code
    assert failing.attempts == {method: 1}


def test_every_read_of_the_contract_is_named_and_no_write():
    (config,) = json.loads(CONFIG.read_text())["methodConfig"]
    named = {(name["service"], name.get("method")) for name in config["name"]}
    wanted = {
        (service, method)
        for service, method in (read[1:].split("/") for read in READS)
        if service == "flue.store.v1.Store"
    }
    assert named == {*wanted, ("flue.agentindex.v1.AgentIndex", None)}
