"""A home of three tools' transcripts, and a real server over it."""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from flue_grpc.cli import main
from flue_grpc.config import load
from flue_grpc.server import Server

FIXTURES = Path(__file__).resolve().parents[1] / "conformance" / "home"


class PiSession:
    """A transcript of Pi below a home, whose messages are the user's."""

    def __init__(self, home, name, cwd):
        directory = home / ".pi/agent/sessions/--home-dev-shop--"
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / f"2026-02-02T00-00-00-000Z_{name}.jsonl"
        self._count = 0
        self._write({"type": "session", "version": 3, "id": name, "cwd": cwd})

    def say(self, *texts):
        for text in texts:
            self._count += 1
            self._write(
                {
                    "type": "message",
                    "id": f"{self._count:08x}",
                    "timestamp": f"2026-02-02T00:00:{self._count % 60:02}.000Z",
                    "message": {"role": "user", "content": text},
                }
            )

    def _write(self, line):
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")


@pytest.fixture
def pi_session(home):
    """Write a transcript with these texts; more can be said later."""

    def write(name, *texts, cwd="/home/dev/shop"):
        session = PiSession(home, name, cwd)
        session.say(*texts)
        return session

    return write


@pytest.fixture
def base(monkeypatch):
    """A short directory (a socket's path has at most 107 bytes) and no environment of ours."""
    with tempfile.TemporaryDirectory(prefix="flue-") as directory:
        for name in ("XDG_RUNTIME_DIR", "XDG_DATA_HOME", "PAGER", "COLUMNS"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", f"{directory}/nobody")
        monkeypatch.setenv("XDG_CONFIG_HOME", f"{directory}/config")
        monkeypatch.setenv("TZ", "UTC")
        yield Path(directory)


@pytest.fixture
def home(base):
    shutil.copytree(FIXTURES, base / "home")
    return base / "home"


@pytest.fixture
def serving(base):
    """Serve from this process, while the block runs, on addresses and with settings of choice."""

    @contextmanager
    def serve(*listen, **settings):
        flags = {
            "home": str(base / "home"),
            "data_dir": str(base / "data"),
            "listen": list(listen) or [f"unix:{base}/s"],
            "drain_seconds": "0.2",
            **settings,
        }
        server = Server(load(flags, {"HOME": str(base)}))
        server.start()
        try:
            yield server
        finally:
            server.stop()

    return serve


@pytest.fixture
def flags(base, home):
    """The flags that name the home and the data, without any server that runs."""
    return ["--home", str(home), "--data-dir", str(base / "data")]


@pytest.fixture
def flue(flags, capfd):
    """Run a command in this process: its exit code, its output, its complaints."""

    def run(*arguments):
        try:
            code = main([*arguments, *flags])
        except SystemExit as exit_:
            code = exit_.code
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return run
