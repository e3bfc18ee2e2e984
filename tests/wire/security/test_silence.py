"""What a server says about itself never holds content, tokens or paths."""

from __future__ import annotations

import re

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor

from flue.store.v1 import store_pb2
from tests.wire.security.contract_calls import RPCS, everything_said, prepare
from tests.wire.security.process import lay_home, running

BY_NAME = {rpc.name: rpc for rpc in RPCS}
CONTENT = "canary-content"
IN_REQUESTS = "canary-request"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    lay_home(home, f"{CONTENT} in a transcript")
    listen = ["--listen", "127.0.0.1:0", "--listen", "unix:{directory}/run/s"]
    with running(*listen, "--home", home, "--log-format", "json") as started:
        with started.channel() as channel:
            prepare(channel)
        yield started


def marked(rpc):
    """The request with a canary in every string that may hold content."""
    request = rpc.request()
    for field in rpc.string_fields():
        if field.name in {"title", "content", "query", "cwd", "scope", "request_id", "id"}:
            setattr(request, field.name, f"{IN_REQUESTS} {getattr(request, field.name)}"[:60])
    for field in rpc.descriptor.input_type.fields:
        if field.type == FieldDescriptor.TYPE_MESSAGE and field.name == "message":
            request.message.content = f"{IN_REQUESTS} hello"
    return request


@pytest.fixture(scope="module")
def said(product):
    """Call every RPC well and badly, with and without a token; return all errors' words."""
    words = b""
    metadata = [("traceparent", f"00-{TRACE}-00f067aa0ba902b7-01"), ("x-note", "canary-metadata")]
    token = [("authorization", f"Bearer {product.token()}")]
    tcp = f"127.0.0.1:{product.port}"
    with product.channel() as channel, product.channel(tcp) as over_tcp:
        for rpc in RPCS:
            for request in (rpc.request(), marked(rpc), b"\x0a\xff canary-damage"):
                for via, more in ((channel, []), (over_tcp, token), (over_tcp, [])):
                    error = rpc.attempt(via, request, metadata=metadata + more)[1]
                    words += everything_said(error) if error is not None else b""
    assert product.stop() == 0
    return words


@pytest.fixture(scope="module")
def log(product, said):
    return product.log.read_text()


def test_the_log_has_a_line_for_every_call(log):
    for rpc in RPCS:
        assert len(re.findall(f'"method": ?"{rpc.path}"', log)) >= 3 * 3, rpc.path
    assert f'"{TRACE}"' in log


def test_the_log_holds_no_content(log):
    assert re.findall(r".*canary.*", log) == []


def test_the_log_holds_no_token_and_no_path(product, log):
    assert product.token() not in log
    assert re.findall(rf".*{re.escape(str(product.home))}.*", log) == []
    assert re.findall(r".*\.jsonl.*", log) == []


def test_errors_hold_no_content_no_token_and_no_path(product, said):
    assert said
    for secret in (CONTENT, "canary-damage", "canary-metadata", product.token()):
        assert secret.encode() not in said
    for path in (str(product.directory), str(product.home), ".jsonl", "store.db"):
        assert path.encode() not in said


def fill(channel, text):
    """Append messages enough for pages of their own."""
    message = {"role": "user", "content": f"{text} " * 100}
    request = store_pb2.AppendMessagesRequest(session_id="s", messages=[message] * 50)
    BY_NAME["AppendMessages"].call(channel, request)


def damage(database, text):
    """Overwrite every page that holds a text, and leave the others."""
    data = bytearray(database.read_bytes())
    pages = [n for n in range(0, len(data), 4096) if text in data[n : n + 4096]]
    for page in pages:
        data[page : page + 4096] = b"canary-damage-\x00\xff" * 256
    database.write_bytes(data)
    return len(pages)


def test_a_damaged_database_shows_neither_its_content_nor_its_place():
    with running() as product:
        with product.channel() as channel:
            prepare(channel)
            fill(channel, CONTENT)
        assert product.stop() == 0
        assert damage(product.data / "store.db", CONTENT.encode()) > 10
        with running(directory=product.directory) as again, again.channel() as channel:
            codes = {}
            for rpc in RPCS:
                error = rpc.attempt(channel, rpc.request())[1]
                if error is not None:
                    codes[rpc.name] = error.code()
                    assert b"canary" not in everything_said(error)
                    assert str(product.directory).encode() not in everything_said(error)
            assert codes["ListMessages"] is grpc.StatusCode.DATA_LOSS
            assert "Snapshot" not in codes
            assert "canary" not in again.log.read_text()
