"""The server under soak, and what the system says of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

WAL_NAME = "store.db-wal"


@dataclass(frozen=True)
class Sample:
    """What the process holds at one moment; memory and files in MiB.

    Descriptors are those of no database: SQLite keeps some of its own for later.
    """

    at: float
    memory: float
    descriptors: int
    threads: int
    wal: float
    index_wal: float
    latencies: dict[str, list[float]]


class Process:
    """One life of the server after another, on the same data."""

    def __init__(self, base):
        self.base = base
        self.address = f"unix:{base}/s"
        self.data = base / "data"
        self._process = None

    def start(self):
        command = [sys.executable, "-m", "flue_grpc", "serve", "--listen", self.address]
        command += ["--home", str(self.base / "home"), "--data-dir", str(self.data)]
        command += ["--sweep-interval-seconds", "1", "--stall-seconds", "3", "--access-log", "off"]
        with (self.base / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log
            )
        assert self._process.stdout.readline().startswith(b"flue-grpc listens"), self.log

    @property
    def log(self):
        return (self.base / "log").read_text()

    def end(self, number):
        """End with a signal; a drained one must leave with 0."""
        self._process.send_signal(number)
        code = self._process.wait(60)
        self._process.stdout.close()
        assert code == (0 if number == signal.SIGTERM else -number), (code, self.log)

    def sample(self, at, latencies):
        proc = Path(f"/proc/{self._process.pid}")
        pages = int((proc / "statm").read_text().split()[1])
        threads = next(
            int(line.split()[1])
            for line in (proc / "status").read_text().splitlines()
            if line.startswith("Threads:")
        )
        return Sample(
            at,
            pages * 4096 / 2**20,
            sum(1 for each in (proc / "fd").iterdir() if not _is_database(each)),
            threads,
            _size(self.data / WAL_NAME),
            sum(map(_size, (self.data / "agents").glob("*.db-wal"))),
            latencies,
        )


def _is_database(descriptor):
    try:
        return ".db" in str(descriptor.readlink())
    except OSError:
        return True  # it came and went


def _size(path):
    try:
        return path.stat().st_size / 2**20
    except OSError:
        return 0.0
