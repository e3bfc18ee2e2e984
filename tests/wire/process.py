"""``flue-grpc`` as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import grpc

PATIENCE = 60.0


class Process:
    """One ``flue-grpc`` with a home and an environment of its own."""

    def __init__(self, directory, *arguments, stderr=None):
        # A file: the server would wait for whoever does not read a full pipe.
        log, name = tempfile.mkstemp(dir=directory, suffix=".log")
        self._log = Path(name)
        self.home = directory / "home"
        self.home.mkdir(exist_ok=True)
        self.socket = self.home / ".local/share/flue-grpc/flue.sock"
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "flue_grpc", *map(str, arguments)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log if stderr is None else stderr,
            text=True,
        )
        os.close(log)
        self.channels = []

    def lines(self, count):
        return [self.process.stdout.readline().rstrip("\n") for _ in range(count)]

    def ready(self):
        self.printed = self.lines(3)
        return self

    def channel(self, target=None):
        options = [("grpc.use_local_subchannel_pool", 1)]  # a life before knows nothing of this one
        channel = grpc.insecure_channel(target or f"unix:{self.socket}", options)
        self.channels.append(channel)
        return channel

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        """Wait for the end; returns (exit code, rest of stdout, stderr)."""
        for channel in self.channels:
            channel.close()
        out, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, self._log.read_text("utf-8")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.end()
