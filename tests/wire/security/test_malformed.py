"""Requests that are no protobuf, too deep, or too large."""

from __future__ import annotations

import random
import socket
import struct
import zlib

import grpc
import h2.config
import h2.connection
import h2.events
import pytest

from flue.store.v1 import store_pb2
from flue_grpc.limits import MAX_RECEIVE_BYTES, MIB
from tests.wire.security.contract_calls import RPCS, everything_said, prepare

BY_NAME = {rpc.name: rpc for rpc in RPCS}
SAID = {"the request cannot be decoded", "Exception deserializing request!"}
HARMLESS = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.OUT_OF_RANGE,
}
DEEP_GROUPS = b"\xfb\x07" * 20_000 + b"\xfc\x07" * 20_000
DEEP_MESSAGES = b""
for _ in range(300):
    DEEP_MESSAGES = b"\xfa\x07" + bytes([len(DEEP_MESSAGES) & 0x7F | 0x80, 2]) + DEEP_MESSAGES
NOT_PROTOBUF = {
    "an unknown wire type": b"\x0f",
    "a field number of 0": b"\x00\x00",
    "a length past the end": b"\x0a\x7fabc",
    "a varint without an end": b"\xff" * 64,
    "groups 20,000 deep": DEEP_GROUPS,
    "a group that is not closed": b"\xfb\x07" * 10,
    "a string that is not UTF-8": b"\x0a\x02\xc3\x28",
}


@pytest.fixture(scope="module")
def channel(product):
    with product.channel() as channel:
        prepare(channel)
        yield channel


@pytest.mark.parametrize("body", NOT_PROTOBUF.values(), ids=NOT_PROTOBUF)
@pytest.mark.parametrize("name", ["GetSession", "ReadTranscript"])
def test_what_is_no_message_is_refused_without_details(channel, name, body):
    with pytest.raises(grpc.RpcError) as caught:
        BY_NAME[name].call(channel, body)
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert caught.value.details() in SAID


def test_unknown_fields_are_passed_over(channel):
    request = BY_NAME["GetSession"].request().SerializeToString()
    assert BY_NAME["GetSession"].call(channel, request + b"\xfa\x07\x03abc")


@pytest.mark.parametrize("rpc", RPCS, ids=lambda rpc: rpc.name)
def test_a_damaged_request_is_served_or_refused(channel, rpc):
    """Bytes flipped, cut and doubled with a fixed seed: an answer, never a defect."""
    chance = random.Random(rpc.name)
    whole = rpc.request().SerializeToString() or b"\x08\x01"
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(data) + 1)
            data[place : place + chance.randint(0, 2)] = chance.randbytes(chance.randint(0, 3))
        error = rpc.attempt(channel, bytes(data), timeout=10)[1]
        if error is not None and error.code() is grpc.StatusCode.INTERNAL:
            assert error.details() in SAID
        elif error is not None:
            assert error.code() in HARMLESS, (bytes(data), error)


def test_a_request_over_the_limit_is_refused_without_details(channel):
    content = "x" * MAX_RECEIVE_BYTES
    request = store_pb2.AppendMessageRequest(
        session_id="s", message=store_pb2.Message(role="user", content=content)
    )
    with pytest.raises(grpc.RpcError) as caught:
        BY_NAME["AppendMessage"].call(channel, request)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert b"grpc-status-details-bin" not in everything_said(caught.value)


def test_a_compressed_bomb_is_refused_before_it_is_held(running):
    """1 MiB on the wire, 512 MiB of zeros in it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(16 * MIB)
    bomb = b"".join(packer.compress(zeros) for _ in range(32)) + packer.flush()
    with running() as product, product.channel() as channel:
        prepare(channel)
        before = product.peak_memory()
        send_compressed(product.socket, "/flue.store.v1.Store/GetSession", bomb)
        BY_NAME["GetSession"].call(channel, BY_NAME["GetSession"].request())
        assert product.peak_memory() - before < 3 * MAX_RECEIVE_BYTES


def send_compressed(socket_path, method, body):
    """Send one gzip message over raw HTTP/2, and wait for the end of its stream."""
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(str(socket_path))
        connection.initiate_connection()
        connection.send_headers(
            1,
            [
                (":method", "POST"),
                (":scheme", "http"),
                (":path", method),
                (":authority", "localhost"),
                ("content-type", "application/grpc"),
                ("grpc-encoding", "gzip"),
                ("te", "trailers"),
            ],
        )
        rest = struct.pack(">BI", 1, len(body)) + body
        ended = False
        while not ended:
            while rest and (room := connection.local_flow_control_window(1)):
                size = min(room, connection.max_outbound_frame_size, len(rest))
                connection.send_data(1, rest[:size], end_stream=size == len(rest))
                rest = rest[size:]
            client.sendall(connection.data_to_send())
            for event in connection.receive_data(client.recv(65536)):
                ended |= isinstance(
                    event,
                    h2.events.StreamEnded | h2.events.StreamReset | h2.events.ConnectionTerminated,
                )
