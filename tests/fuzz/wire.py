"""A whole server in this process that gets any bytes for requests."""

from __future__ import annotations

import atexit
import base64
import shutil
import tempfile
from pathlib import Path

import grpc

from flue_grpc import config
from flue_grpc.listing import Cursor
from flue_grpc.rpc.page_token import VERSION, PageTokens
from flue_grpc.server import Server
from tests.wire.homes import write_session
from tests.wire.security.contract_calls import RPCS, everything_said, prepare

CODE = grpc.StatusCode
# What the contract's table has, less what a sound server on a sound disk never says.
ALLOWED = {
    CODE.INVALID_ARGUMENT,
    CODE.NOT_FOUND,
    CODE.ALREADY_EXISTS,
    CODE.OUT_OF_RANGE,
    CODE.FAILED_PRECONDITION,
    CODE.RESOURCE_EXHAUSTED,
}
UNREADABLE = "the request cannot be decoded"
SECONDS = 20


class Wire:
    """Sends bytes to RPCs by number, and judges what comes back."""

    def __init__(self):
        self._directory = Path(tempfile.mkdtemp(prefix="flue-f"))
        home = self._directory / "home"
        for number in range(3):
            write_session(home, number)
        settings = {
            "home": home,
            "data_dir": self._directory / "data",
            "listen": f"unix:{self._directory}/s",
            "durability": "normal",
            "sweep_interval_seconds": 60.0,
        }
        self._server = Server(config.combine(settings))
        self._server.start()
        self._channel = grpc.insecure_channel(self._server.addresses[0].target)
        prepare(self._channel)
        atexit.register(self.close)

    def send(self, number, request):
        """Call RPC ``number`` with ``request``; a live stream is left after its first response."""
        rpc = RPCS[number % len(RPCS)]
        error = self._attempt(rpc, request)
        if error is None:
            return
        said = everything_said(error)
        assert str(self._directory).encode() not in said
        is_unreadable = error.code() is CODE.INTERNAL and error.details() == UNREADABLE
        assert error.code() in ALLOWED or is_unreadable, (rpc.name, request, error)

    def send_forged(self, number, kind, payload):
        """Call RPC ``number`` with a page token of the right form and any content.

        A token proves integrity, not origin: whoever reads the source can make one.
        """
        listing = [rpc for rpc in RPCS if "page_token" in _fields(rpc)]
        rpc = listing[number % len(listing)]
        kinds = sorted(Cursor.__subclasses__(), key=lambda kind: kind.__name__)
        request = rpc.request()
        checksum = PageTokens(request)._checksum(kinds[kind % len(kinds)], payload)
        token = base64.urlsafe_b64encode(VERSION + checksum + payload)
        request.page_token = token.rstrip(b"=").decode()
        if "mode" in _fields(rpc):
            request.mode = number // len(listing) % 2 + 1
        self.send(RPCS.index(rpc), request.SerializeToString())

    def _attempt(self, rpc, request):
        try:
            if not rpc.descriptor.server_streaming:
                self._channel.unary_unary(rpc.path)(request, timeout=SECONDS)
                return None
            stream = self._channel.unary_stream(rpc.path)(request, timeout=SECONDS)
            next(stream)
            stream.cancel()
        except grpc.RpcError as error:
            return error
        return None

    def close(self):
        atexit.unregister(self.close)
        self._channel.close()
        self._server.stop()
        shutil.rmtree(self._directory, ignore_errors=True)


def _fields(rpc):
    return rpc.descriptor.input_type.fields_by_name
