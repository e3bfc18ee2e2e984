"""A real server of its own for each run: over a Unix socket, or TCP with TLS and a token."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from certificates import write_certificates

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
SCENARIOS = Path(__file__).resolve().parents[1]
TRANSPORTS = ("unix", "tcp")
FAULT = " ERROR "
FAULT_LINES = 60
LISTENS = "flue-grpc listens on "
STOP_SECONDS = 30


@dataclass(frozen=True)
class RunningServer:
    """Where it listens and what a client needs to know."""

    transport: str
    address: str
    home: Path
    token: str = ""
    ca: str = ""

    def faults(self) -> str:
        """Give the end of the server's log from its first fault on."""
        lines = (self.home.parent / "server.log").read_text().splitlines(keepends=True)
        first = next((n for n, line in enumerate(lines) if FAULT in line), len(lines))
        return "".join(lines[first : first + FAULT_LINES])


@contextmanager
def running_server(transport: str) -> Iterator[RunningServer]:
    """Start a server on a copy of the fixtures' home, and stop it in order."""
    # Not below pytest's long directories: a socket's path has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="flue-") as directory:
        base = Path(directory)
        shutil.copytree(SCENARIOS / "home", base / "home")
        flags, ca = _flags(transport, base)
        with _process(base, flags) as process:
            address = _address(process, base / "server.log")
            token = _token(base / "tokens") if transport == "tcp" else ""
            yield RunningServer(transport, address, base / "home", token, ca)


def _flags(transport: str, base: Path) -> tuple[list[str], str]:
    if transport == "unix":
        return ["--listen", f"unix:{base}/flue.sock"], ""
    write_certificates(base)
    tls = ["--tls-cert", str(base / "server.crt"), "--tls-key", str(base / "server.key")]
    tokens = ["--token-file", str(base / "tokens")]
    return ["--listen", "127.0.0.1:0", *tls, *tokens], str(base / "ca.crt")


@contextmanager
def _process(base: Path, flags: list[str]) -> Iterator[subprocess.Popen[str]]:
    common = ["--home", str(base / "home"), "--data-dir", str(base / "data")]
    # Files change under the server's eyes here; it should look often.
    common += ["--sweep-interval-seconds", "0.2", "--durability", "normal"]
    log = base / "server.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "flue_grpc", "serve", *common, *flags],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            env={**os.environ, "XDG_CONFIG_HOME": str(base / "config")},
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
    if process.returncode:
        raise RuntimeError(f"the server ended with {process.returncode}: {log.read_text()}")


def _address(process: subprocess.Popen[str], log: Path) -> str:
    for line in process.stdout or ():
        if line.startswith(LISTENS):
            return line.removeprefix(LISTENS).split()[0]
    raise RuntimeError(f"the server did not start: {log.read_text()}")


def _token(path: Path) -> str:
    lines = path.read_text("ascii").splitlines()
    fields = next(line.split() for line in lines if line and not line.startswith("#"))
    return fields[1]
