"""What a server says about itself never holds content, tokens or paths."""

from __future__ import annotations

import re

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from flue.agentindex.v1 import agent_index_pb2
from flue.store.v1 import store_pb2
from tests.wire.security.contract_calls import RPCS, everything_said, prepare
from tests.wire.security.process import lay_home, running

BY_NAME = {rpc.name: rpc for rpc in RPCS}
CONTENT = "canary-content"
IN_REQUESTS = "canary-request"
WRONG_TOKEN = "canary-token-canary-token-canary"
# What an error may repeat, as metadata of that name: they name a thing among several, and no
# more; whoever called sent them (contract rule 6, each dynamic part).
REPEATED = {"session_id", "time_zone", "tool"}
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


def spoiled_values(name):
    """A value of good form, one of bad form in a syntax of its own, and one that is too long."""
    canary = f"{IN_REQUESTS}-{name}"
    return (canary, f'{canary} "\x00(', canary + "x" * 9000)


def string_names(descriptor):
    """Name every string field of a message and of those within."""
    for field in descriptor.fields:
        if field.type == FieldDescriptor.TYPE_STRING:
            yield field.name
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            yield from string_names(field.message_type)


def set_everywhere(message, name, value):
    """Set the string fields of a name, those of messages within too."""
    for field in message.DESCRIPTOR.fields:
        inner = getattr(message, field.name)
        if field.type != FieldDescriptor.TYPE_MESSAGE:
            if field.type == FieldDescriptor.TYPE_STRING and field.name == name:
                inner.append(value) if field.is_repeated else setattr(message, name, value)
        elif name in string_names(field.message_type):
            if field.message_type.GetOptions().map_entry:
                inner[value] = value
            else:
                for each in (inner or [inner.add()]) if field.is_repeated else [inner]:
                    set_everywhere(each, name, value)


def marked(rpc):
    """A request for each string field and each way to spoil it, as a query in both modes."""
    for name in sorted(set(string_names(rpc.descriptor.input_type))):
        for value in spoiled_values(name):
            request = rpc.request()
            set_everywhere(request, name, value)
            assert name.encode() in request.SerializeToString(), (rpc.name, name)
            yield request
            if "mode" in rpc.descriptor.input_type.fields_by_name:
                request.mode = agent_index_pb2.SEARCH_MODE_RANKED
                yield request


@pytest.fixture(scope="module")
def refusals(product):
    """Call every RPC well and badly, with and without a token; return all errors."""
    errors = []
    metadata = [("traceparent", f"00-{TRACE}-00f067aa0ba902b7-01"), ("x-note", "canary-metadata")]
    token = [("authorization", f"Bearer {product.token()}")]
    wrong = [("authorization", f"Bearer {WRONG_TOKEN}")]
    tcp = f"127.0.0.1:{product.port}"
    with product.channel() as channel, product.channel(tcp) as over_tcp:
        for rpc in RPCS:
            for request in (rpc.request(), b"\x0a\xff canary-damage"):
                for via, more in ((channel, []), (over_tcp, token), (over_tcp, wrong)):
                    errors.append(rpc.attempt(via, request, metadata=metadata + more)[1])
            errors += [
                rpc.attempt(channel, request, metadata=metadata)[1] for request in marked(rpc)
            ]
    assert product.stop() == 0
    return [error for error in errors if error is not None]


@pytest.fixture(scope="module")
def said(refusals):
    """Give the words of all errors, without the parts of requests that they may repeat."""
    return b"".join(map(unasked_words, refusals))


def error_info(error):
    """Unpack why a call was refused; None where the status has no details."""
    status = rpc_status.from_call(error)
    info = error_details_pb2.ErrorInfo()
    return info if status and status.details and status.details[0].Unpack(info) else None


def unasked_words(error):
    """Give all that an error says, but for one mention of each part that it may repeat."""
    words, info = everything_said(error), error_info(error)
    for key in REPEATED if info else ():
        words = words.replace(info.metadata[key].encode(), b"", 1)
    return words


@pytest.fixture(scope="module")
def log(product, refusals):
    return product.log.read_text()


def test_the_log_has_a_line_for_every_call(log):
    for rpc in RPCS:
        assert len(re.findall(f'"method": ?"{rpc.path}"', log)) >= 3 * 2, rpc.path
    assert f'"{TRACE}"' in log


def test_the_log_holds_no_content(log):
    assert re.findall(r".*canary.*", log) == []


def test_the_log_holds_no_token_and_no_path(product, log):
    assert product.token() not in log
    for directory in (product.home, product.directory):
        assert re.findall(rf".*{re.escape(str(directory))}.*", log) == []
    assert re.findall(r".*\.jsonl.*", log) == []


def test_errors_hold_no_content_no_token_and_no_path(product, said):
    assert re.findall(rb".{0,40}canary.{0,40}", said) == []
    assert product.token().encode() not in said
    for path in (
        str(product.directory),
        str(product.home),
        str(product.socket),
        ".jsonl",
        "store.db",
    ):
        assert path.encode() not in said


def test_the_errors_are_those_that_could_repeat_something(refusals):
    infos = [info for error in refusals if (info := error_info(error))]
    assert {info.reason for info in infos} >= {
        "UNAUTHENTICATED", "UNKNOWN_TOOL", "TRANSCRIPT_NOT_FOUND", "SESSION_NOT_FOUND", "BAD_ID", "BAD_REQUEST_ID", "BAD_ROLE", "BAD_QUERY", "QUERY_TOO_LONG",
        "BAD_PAGE_TOKEN", "BAD_TIME_ZONE", "CURSOR_GONE",
    }  # fmt: skip
    repeated = {key for info in infos for key in info.metadata if IN_REQUESTS in info.metadata[key]}
    assert repeated == REPEATED


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
