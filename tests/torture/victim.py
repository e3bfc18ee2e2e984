"""A server that is killed again and again, always on the same data."""

from __future__ import annotations

import time

import grpc

from flue.store.v1 import store_pb2_grpc
from tests.torture.nursery import Nursery

PATIENCE = 30.0
OPTIONS = [
    ("grpc.max_receive_message_length", 36 << 20),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 50),
]


class Victim:
    """One life of the server after another."""

    def __init__(self, directory, *arguments):
        self.directory = directory
        self.data = directory / "data"
        self.home = directory / "home"
        self.home.mkdir(exist_ok=True)
        self.address = f"unix:{directory}/s"
        self._arguments = ["serve", "--listen", self.address, "--home", str(self.home)]
        self._arguments += ["--data-dir", str(self.data), "--access-log", "off", *arguments]
        self._nursery = Nursery(directory / "log")
        self._life = None
        self.channel = None
        self.lives = 0

    @property
    def database(self):
        return self.data / "store.db"

    def start(self):
        self._life = self._nursery.run("flue_grpc.cli:main", *self._arguments)
        line = self._life.line()
        assert line is not None, (self.directory / "log").read_text()
        assert line.startswith("flue-grpc listens on "), line
        self._close_channel()
        self.channel = grpc.insecure_channel(self.address, OPTIONS)
        grpc.channel_ready_future(self.channel).result(timeout=PATIENCE)
        self.store = store_pb2_grpc.StoreStub(self.channel)
        self.lives += 1
        return self

    def kill(self):
        """Kill it; the channel stays open for clients that have not noticed yet."""
        assert self._life.kill() == -9
        self._life = None

    def stop(self):
        """End it as its owner would."""
        assert self._life.terminate() == 0
        self._life = None

    def close(self):
        if self._life is not None:
            self.kill()
        self._close_channel()
        self._nursery.close()

    def _close_channel(self):
        if self.channel is not None:
            self.channel.close()


def until(moment):
    """Spend the time up to a moment of the monotonic clock."""
    while (left := moment - time.monotonic()) > 0:
        time.sleep(min(left, 0.005))
