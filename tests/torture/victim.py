"""A server that is killed again and again, always on the same data."""

from __future__ import annotations

import subprocess
import sys
import time

import grpc

from flue.store.v1 import store_pb2_grpc

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
        self._command = [sys.executable, "-m", "flue_grpc", "serve", "--listen", self.address]
        self._command += ["--home", str(self.home), "--data-dir", str(self.data), *arguments]
        self._command += ["--access-log", "off"]
        self.process = None
        self.channel = None
        self.lives = 0

    @property
    def database(self):
        return self.data / "store.db"

    def start(self):
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log
            )
        line = self.process.stdout.readline()
        assert line.startswith(b"flue-grpc listens on "), (self.directory / "log").read_text()
        self.channel = grpc.insecure_channel(self.address, OPTIONS)
        grpc.channel_ready_future(self.channel).result(timeout=PATIENCE)
        self.store = store_pb2_grpc.StoreStub(self.channel)
        self.lives += 1
        return self

    def kill(self):
        """End it as a power cut of the process would: with SIGKILL."""
        self.process.kill()
        self._gone()

    def stop(self):
        """End it as its owner would."""
        self.process.terminate()
        assert self._gone() == 0

    def _gone(self):
        code = self.process.wait(timeout=PATIENCE)
        self.process.stdout.close()
        self.channel.close()
        self.process = None
        return code

    def close(self):
        if self.process is not None:
            self.kill()


def until(moment):
    """Spend the time up to a moment of the monotonic clock."""
    while time.monotonic() < moment:
        time.sleep(0.001)
