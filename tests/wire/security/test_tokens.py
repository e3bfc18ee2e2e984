"""TCP on loopback, guarded by tokens: each rule seen from the outside."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_status import rpc_status

from flue.store.v1 import store_pb2
from flue_grpc.security.roles import READ_METHODS, Role
from flue_grpc.security.token_edit import add_token, remove_token
from tests.waiting import wait_until
from tests.wire.security.contract_calls import RPCS, SERVED, everything_said, prepare
from tests.wire.security.process import is_serving, running

REFUSED = "UNAUTHENTICATED"
BY_NAME = {rpc.name: rpc for rpc in RPCS}


@pytest.fixture(scope="module")
def product():
    with running("--listen", "127.0.0.1:0") as started:
        yield started


@pytest.fixture
def channel(product):
    with product.channel(f"127.0.0.1:{product.port}") as channel:
        yield channel


def bearing(token):
    return {"metadata": [("authorization", f"Bearer {token}")]}


def reason(error):
    status = rpc_status.from_call(error)
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert info.domain == "flue-grpc"
    return info.reason


def refused(rpc, channel, **arguments):
    error = rpc.attempt(channel, rpc.request(), **arguments)[1]
    return None if error is None else (error.code().name, reason(error))


@pytest.mark.parametrize("rpc", RPCS, ids=lambda rpc: rpc.name)
def test_every_rpc_is_refused_without_a_token(channel, rpc):
    assert refused(rpc, channel) == ("UNAUTHENTICATED", "UNAUTHENTICATED")


@pytest.mark.parametrize(
    "metadata",
    [
        [("authorization", "Bearer wrong-wrong-wrong-wrong-wrong")],
        [("authorization", "Bearer ")],
        [("authorization", "Basic dXNlcjpwYXNz")],
        [("authorization-bin", b"Bearer")],
        [("x-authorization", "Bearer")],
    ],
)
def test_anything_but_a_token_is_refused_and_not_echoed(channel, metadata):
    rpc = BY_NAME["ListSessions"]
    error = rpc.attempt(channel, rpc.request(), metadata=metadata)[1]
    assert (error.code(), reason(error)) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
    assert b"wrong-wrong" not in everything_said(error)


def test_a_token_twice_is_refused(product, channel):
    metadata = bearing(product.token())["metadata"] * 2
    assert refused(BY_NAME["Snapshot"], channel, metadata=metadata)[0] == "UNAUTHENTICATED"


def test_credentials_are_looked_at_before_the_request(channel):
    """What is sent with a wrong token is not even parsed."""
    error = BY_NAME["AppendMessage"].attempt(channel, b"\x0f\xff" * 1000)[1]
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("rpc", RPCS, ids=lambda rpc: rpc.name)
def test_the_first_token_may_do_everything(product, channel, rpc):
    error = rpc.attempt(channel, rpc.request(), **bearing(product.token()))[1]
    assert error is None or error.code() in {
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.ALREADY_EXISTS,
    }


def reading_token(product):
    if "viewer" not in product.tokens.read_text():
        add_token(product.tokens, Role.READ, "viewer")
    return product.token("viewer")


@pytest.mark.parametrize("rpc", RPCS, ids=lambda rpc: rpc.name)
def test_a_reading_token_may_read_and_nothing_else(product, channel, rpc):
    outcome = refused(rpc, channel, **bearing(reading_token(product)))
    if rpc.path in READ_METHODS:
        assert outcome is None or outcome[0] == "NOT_FOUND"
    else:
        assert outcome == ("PERMISSION_DENIED", "READ_ONLY_CREDENTIALS")


def test_health_is_open(channel):
    assert is_serving(channel)


def test_reflection_wants_the_same_credentials(product, channel):
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    question = reflection_pb2.ServerReflectionRequest(list_services="")
    with pytest.raises(grpc.RpcError) as caught:
        list(stub.ServerReflectionInfo(iter([question]), timeout=30))
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    (answer,) = stub.ServerReflectionInfo(iter([question]), timeout=30, **bearing(product.token()))
    names = {service.name for service in answer.list_services_response.service}
    assert "flue.store.v1.Store" in names
    reader = bearing(reading_token(product))
    assert list(stub.ServerReflectionInfo(iter([question]), timeout=30, **reader)) == [answer]


def test_tokens_rotate_without_a_restart(product, channel):
    rpc = BY_NAME["ListSessions"]
    token = add_token(product.tokens, Role.FULL, "next")
    assert refused(rpc, channel, **bearing(token)) is None
    remove_token(product.tokens, "next")
    assert refused(rpc, channel, **bearing(token)) == ("UNAUTHENTICATED", "UNAUTHENTICATED")
    assert product.process.poll() is None


LIVE = {
    "ListMessages": {"session_id": "s", "follow": True},
    "ReadTranscript": SERVED["ReadTranscript"] | {"follow": True},
    "Watch": {},
}


def open_stream(channel, name, token, **fields):
    """Begin a call that streams its responses; it has to end within a minute."""
    descriptor = BY_NAME[name].descriptor
    request = GetMessageClass(descriptor.input_type)(**fields).SerializeToString()
    parse = GetMessageClass(descriptor.output_type).FromString
    call = channel.unary_stream(BY_NAME[name].path, None, parse)
    return call(request, timeout=60, **bearing(token))


@pytest.mark.parametrize("name", LIVE)
def test_a_stream_ends_with_the_token_that_opened_it(product, channel, name):
    prepare_with(channel, product.token())
    leaver, stayer = (add_token(product.tokens, Role.READ, f"{who}-{name}") for who in "ab")
    ending = open_stream(channel, name, leaver, **LIVE[name])
    going_on = open_stream(channel, name, stayer, **LIVE[name])
    next(ending)
    next(going_on)
    remove_token(product.tokens, f"a-{name}")
    with pytest.raises(grpc.RpcError) as caught:
        list(ending)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert going_on.is_active()
    going_on.cancel()
    lines = product.logged(f"principal=a-{name}")
    (line,) = (line for line in lines.splitlines() if f"principal=a-{name} " in line)
    assert " code=UNAUTHENTICATED " in line


def test_a_stream_whose_reader_waits_ends_with_its_token_too(product, channel):
    prepare_with(channel, product.token())
    append = BY_NAME["AppendMessage"]
    for _ in range(8):
        message = {"role": "user", "content": "x" * 1_000_000}
        request = store_pb2.AppendMessageRequest(session_id="s", message=message)
        assert append.attempt(channel, request, **bearing(product.token()))[1] is None
    token = add_token(product.tokens, Role.READ, "waiter")
    stream = open_stream(channel, "ListMessages", token, session_id="s")
    next(stream)
    remove_token(product.tokens, "waiter")
    product.logged("principal=waiter")
    with pytest.raises(grpc.RpcError) as caught:
        list(stream)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_the_token_file_is_private(product):
    assert product.tokens.stat().st_mode & 0o7777 == 0o600


def test_the_log_names_the_caller_and_never_a_token(product, channel):
    token, wrong = product.token(), "guess-guess-guess-guess-guess"
    prepare_with(channel, token)
    rpc = BY_NAME["ListSessions"]
    before = product.log.read_text().count(REFUSED)
    assert refused(rpc, channel, **bearing(wrong))[0] == "UNAUTHENTICATED"
    wait_until(lambda: product.log.read_text().count(REFUSED) > before, tell=product.log.read_text)
    lines = product.logged("principal=default")
    assert token not in lines
    assert wrong not in lines


def prepare_with(channel, token):
    """Make a session as the owner of a token."""

    class Bearing(grpc.UnaryUnaryClientInterceptor):
        def intercept_unary_unary(self, continuation, details, request):
            return continuation(details._replace(**bearing(token)), request)

    prepare(grpc.intercept_channel(channel, Bearing()))


def test_callers_without_a_token_cannot_use_up_what_others_need(product, channel):
    """Calls that never send their request, from a client that has no token."""
    release = threading.Event()

    def never():
        release.wait(60)
        yield from ()

    with product.channel(f"127.0.0.1:{product.port}") as hostile:
        calls = [
            hostile.stream_stream(BY_NAME[name].path)(never())
            for name in ("GetSession", "ListSessions", "ListMessages")
            for _ in range(150)
        ]
        for name in ("GetSession", "ListSessions", "ReadPage"):
            outcome = refused(BY_NAME[name], channel, **bearing(product.token()))
            assert outcome is None or outcome[0] == "NOT_FOUND"
        for call in calls:
            call.cancel()
        release.set()


def test_the_socket_beside_it_wants_none():
    with running("--listen", "127.0.0.1:0", "--listen", "unix:{directory}/run/s") as product:
        with product.channel() as channel:
            assert refused(BY_NAME["ListSessions"], channel) is None
        with product.channel(f"127.0.0.1:{product.port}") as channel:
            assert refused(BY_NAME["ListSessions"], channel)[0] == "UNAUTHENTICATED"


def test_the_line_to_paste_brings_the_token(tmp_path):
    """As printed, with buf, which finds the methods by reflection."""
    buf = Path(sys.executable).with_name("buf")
    with running("--listen", "127.0.0.1:0") as product:
        lines = [product.process.stdout.readline().strip() for _ in range(2)]
        (line,) = (line for line in lines if line.startswith("buf curl "))
        done = subprocess.run(
            ["bash", "-c", line.replace("buf", str(buf), 1)],
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert '"tool"' in done.stdout
