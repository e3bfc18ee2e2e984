"""Raw HTTP/2: frames that no gRPC client sends, and floods of those that they do.

After each, a well-behaved client is served as before.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import tempfile

import grpc
import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from hpack import Encoder

from flue_grpc import config, limits
from flue_grpc.limits import MIB
from flue_grpc.server import Server

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
END_STREAM, END_HEADERS = 1, 4
CHECK = "/grpc.health.v1.Health/Check"
GET = "/flue.store.v1.Store/GetSession"
LIST = "/flue.store.v1.Store/ListSessions"


def frame(kind, flags=0, stream=0, payload=b"", length=None):
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def headers(path, extra=()):
    fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        *extra,
    ]
    return Encoder().encode(fields)


def message(body=b"", flag=0, length=None):
    return struct.pack(">BI", flag, len(body) if length is None else length) + body


class Raw:
    """A connection that sends what it is told, and reads until the server closes or is quiet."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(str(path))

    def begin(self):
        self.send(PREFACE + frame(SETTINGS))
        return self

    def send(self, *parts):
        """Send all; a server that has closed already is as good as one that reads."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(b"".join(parts))

    def until_answered(self):
        """Read until the answer to a PING, or the end; returns the kinds of all frames."""
        self.send(frame(PING, payload=b"finished"))
        kinds, buffer = [], b""
        while True:
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                return [*kinds, "closed"]
            if not data:
                return [*kinds, "closed"]
            buffer += data
            while len(buffer) >= 9:
                size = int.from_bytes(buffer[:3], "big")
                if len(buffer) < 9 + size:
                    break
                kind, flags, payload = buffer[3], buffer[4], buffer[9 : 9 + size]
                buffer = buffer[9 + size :]
                kinds.append(kind)
                if kind == PING and flags & 1 and payload == b"finished":
                    return kinds

    def close(self):
        self.socket.close()


@pytest.fixture
def raw(product):
    opened = []

    def connect():
        opened.append(Raw(product.socket))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture(autouse=True)
def others_are_served(product):
    """Whatever a test did, little memory was held, and the next client gets its answer."""
    before = product.peak_memory()
    yield
    assert product.peak_memory() - before < 48 * MIB
    with grpc.insecure_channel(f"unix:{product.socket}") as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(), timeout=20
        )
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    assert product.process.poll() is None


@pytest.mark.parametrize(
    "opening",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64,
        b"\0" * 1024,
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        PREFACE + b"\xff" * 64,
    ],
    ids=["HTTP/1.1", "TLS", "zeros", "bad preface", "bad first frame"],
)
def test_what_is_no_http2_is_hung_up_on(raw, opening):
    connection = raw()
    connection.send(opening)
    assert "closed" in connection.until_answered()


@pytest.mark.parametrize(
    "frames",
    [
        frame(SETTINGS, payload=b"12345"),
        frame(SETTINGS, stream=1),
        frame(SETTINGS, flags=1, payload=b"123456"),
        frame(PING, payload=b"short"),
        frame(WINDOW, payload=b"\0\0\0\0"),
        frame(CONTINUATION, flags=END_HEADERS, stream=1),
        frame(HEADERS, flags=END_HEADERS, stream=1, payload=b"\xff\xff\xff\xff\xff"),
        frame(DATA, length=2**24 - 1, stream=1, payload=b"x" * 1000),
        frame(RST, stream=1, payload=b"\0\0\0\0\0"),
        frame(HEADERS, flags=0, stream=1, payload=headers(CHECK)) + frame(DATA, stream=1),
    ],
    ids=[
        "SETTINGS of a wrong length",
        "SETTINGS on a stream",
        "SETTINGS ACK with a payload",
        "PING of a wrong length",
        "WINDOW_UPDATE by nothing",
        "CONTINUATION of nothing",
        "headers that are no HPACK",
        "a frame over the limit",
        "RST_STREAM of a wrong length",
        "DATA amid headers",
    ],
)
def test_a_malformed_frame_ends_its_connection_alone(raw, frames):
    connection = raw().begin()
    connection.send(frames)
    assert connection.until_answered()[-1] == "closed"


@pytest.mark.parametrize(
    "frames",
    [
        frame(0x77, flags=0xFF, stream=0, payload=b"unknown frames are to be ignored"),
        frame(GOAWAY, payload=struct.pack(">II", 0, 0)),
        frame(DATA, stream=99, payload=b"x"),
        frame(RST, stream=99, payload=b"\0\0\0\x08"),
        frame(PING, payload=b"12345678") * 3,
        frame(PUSH, flags=END_HEADERS, stream=1, payload=b"\0\0\0\2"),
        frame(HEADERS, flags=END_HEADERS, stream=2, payload=headers(CHECK)),
    ],
    ids=[
        "unknown kind",
        "GOAWAY",
        "DATA on no stream",
        "RST on no stream",
        "pings",
        "PUSH_PROMISE by a client",
        "an even stream number",
    ],
)
def test_an_odd_frame_is_borne(raw, frames):
    connection = raw().begin()
    connection.send(frames)
    assert connection.until_answered()[-1] == PING


@pytest.mark.parametrize(
    "body",
    [
        message(b"", flag=1),
        message(b"", flag=255),
        message(b"abc", length=2**32 - 1),
        message(b"\x0a\xff\xff\xff\xff\x7f"),
        b"\0",
        b"",
    ],
    ids=[
        "compressed without an encoding",
        "unknown flag",
        "a length of 4 GiB",
        "no protobuf",
        "half a prefix",
        "nothing",
    ],
)
def test_a_malformed_message_fails_its_call_alone(raw, body):
    connection = raw().begin()
    connection.send(
        frame(HEADERS, END_HEADERS, 1, headers(GET)),
        frame(DATA, END_STREAM, 1, body),
    )
    assert connection.until_answered()[-1] == PING


def test_rapid_resets_are_borne(raw):
    """Open and reset streams as fast as they can be written (CVE-2023-44487)."""
    connection = raw().begin()
    for start in range(1, 20_001, 2000):
        parts = []
        for stream in range(start, start + 2000, 2):
            parts.append(frame(HEADERS, END_HEADERS, stream, headers(LIST)))
            parts.append(frame(DATA, END_STREAM, stream, message()))
            parts.append(frame(RST, 0, stream, b"\0\0\0\x08"))
        connection.send(*parts)
    connection.until_answered()


def test_endless_headers_are_cut_off(raw):
    """CONTINUATION frames without an end (CVE-2024-27316): 16 MiB are never held."""
    connection = raw().begin()
    field = Encoder().encode([("x-filler", "y" * 8000)], huffman=False)
    connection.send(frame(HEADERS, 0, 1, headers(GET)))
    for _ in range(2000):
        connection.send(frame(CONTINUATION, 0, 1, field))
    connection.send(frame(CONTINUATION, END_HEADERS, 1, b""))
    assert connection.until_answered()[-1] in (PING, "closed")


def test_large_metadata_is_refused_and_not_echoed(product):
    with grpc.insecure_channel(f"unix:{product.socket}") as channel:
        call = channel.unary_unary(GET)
        with pytest.raises(grpc.RpcError) as caught:
            call(b"", metadata=[("x-canary", "canary" * 20_000)], timeout=20)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "canary" not in str(caught.value.details())


def test_a_flood_of_settings_and_pings_is_borne_or_ended(raw):
    connection = raw().begin()
    for _ in range(50):
        connection.send(frame(SETTINGS, payload=struct.pack(">HI", 4, 65535)) * 200)
        connection.send(frame(PING, payload=b"12345678") * 200)
    connection.until_answered()


def test_a_connection_that_says_nothing_is_closed(monkeypatch):
    """In this process, so that nobody has to wait for the real ten seconds."""
    monkeypatch.setattr(limits, "HANDSHAKE_SECONDS", 0.1)
    with tempfile.TemporaryDirectory(prefix="h") as short:
        given = {"home": short, "data_dir": f"{short}/d", "listen": f"unix:{short}/s"}
        server = Server(config.combine(given, {"HOME": short}))
        server.start()
        try:
            with socket.socket(socket.AF_UNIX) as silent:
                silent.settimeout(20)
                silent.connect(f"{short}/s")
                while silent.recv(65536):
                    pass
        finally:
            server.stop()


def test_many_connections_that_say_nothing_are_borne(raw):
    connections = [raw() for _ in range(300)]
    assert len(connections) == 300


def test_more_streams_than_are_allowed_are_refused(product):
    """The limit is announced and kept; h2, a correct client, will not pass it."""
    config = h2.config.H2Configuration(client_side=True)
    connection = h2.connection.H2Connection(config)
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(product.socket))
        connection.initiate_connection()
        client.sendall(connection.data_to_send())
        settings = None
        while settings is None:
            for event in connection.receive_data(client.recv(65536)):
                if isinstance(event, h2.events.RemoteSettingsChanged):
                    settings = event.changed_settings
        codes = {int(code): change.new_value for code, change in settings.items()}
        assert codes[3] == 1024
        for _ in range(1024):
            connection.send_headers(
                connection.get_next_available_stream_id(),
                [
                    (":method", "POST"),
                    (":scheme", "http"),
                    (":path", GET),
                    (":authority", "localhost"),
                    ("content-type", "application/grpc"),
                    ("te", "trailers"),
                ],
            )
        client.sendall(connection.data_to_send())
        with pytest.raises(h2.exceptions.TooManyStreamsError):
            connection.send_headers(
                connection.get_next_available_stream_id(), [(":method", "POST")]
            )
