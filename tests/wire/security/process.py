"""The product as its users run it: a process of its own, seen only from the outside."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.waiting import wait_until

PROGRAM = Path(sys.executable).with_name("flue-grpc")
PATIENCE = 30.0
SESSION = "11111111-2222-4333-8444-555555555555"


def transcript(text="hello there"):
    """Write the two lines of a conversation that Claude Code could have written."""
    common = {"sessionId": SESSION, "cwd": "/srv/work", "version": "2.0.1", "isSidechain": False}
    user = {"type": "user", "uuid": "u1", "timestamp": "2025-01-01T10:00:00.000Z"}
    user |= {"message": {"role": "user", "content": text}}
    reply = {"type": "assistant", "uuid": "u2", "timestamp": "2025-01-01T10:00:01.000Z"}
    reply |= {
        "requestId": "req_1",
        "message": {
            "id": "msg_1",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": f"you said {text}"}],
            "usage": {"input_tokens": 3, "output_tokens": 4},
        },
    }
    return "".join(json.dumps(common | line) + "\n" for line in (user, reply))


def lay_home(home, text="hello there"):
    folder = home / ".claude" / "projects" / "-srv-work"
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_text(transcript(text))


class Product:
    """One running server; ``directory`` holds all it was given and all it makes."""

    def __init__(self, directory, arguments, environment, umask):
        self.directory = directory
        self.home = directory / "home"
        self.data = directory / "data"
        self.socket = directory / "run" / "s"
        self.log = directory / "log"
        if not self.home.exists():
            lay_home(self.home)
        given = [str(part).format(directory=directory) for part in arguments]
        listen = [] if "--listen" in given else ["--listen", f"unix:{self.socket}"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(PROGRAM, "serve", "--home", self.home, "--data-dir", self.data),
                    *(*listen, "--access-log", "on", *given),
                ],
                env=self._environment() | environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                umask=umask,
            )
        self.addresses = []
        self._expected = max(1, given.count("--listen"))

    def _environment(self):
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.directory / "nobody"),
            "XDG_CONFIG_HOME": str(self.directory / "config"),
        }

    @property
    def tokens(self):
        return self.data / "tokens"

    def token(self, name="default"):
        """The token of a name, as the file has it."""
        lines = [line.split() for line in self.tokens.read_text().splitlines()]
        (found,) = (line[1] for line in lines if line[0] != "#" and line[-1] == name)
        return found

    @property
    def port(self):
        """The port of the one TCP address."""
        (port,) = (int(m[1]) for a in self.addresses if (m := re.fullmatch(r".*:(\d+)", a)))
        return port

    def wait_ready(self):
        """Read the addresses that it prints, one line each."""
        while len(self.addresses) < self._expected:
            line = self.process.stdout.readline()
            found = re.fullmatch(r"flue-grpc listens on (\S+)\n", line)
            assert found, f"{line} {self.process.poll()}: {self.log.read_text()}"
            self.addresses.append(found[1])
        return self

    def channel(self, address=None, **options):
        pairs = [("grpc.use_local_subchannel_pool", 1), *options.items()]
        return grpc.insecure_channel(address or f"unix:{self.socket}", pairs)

    def peak_memory(self):
        """The most resident memory that it ever had, in bytes; 0 where no /proc tells."""
        return self._memory("VmHWM")

    def memory(self):
        """Its resident memory, in bytes; 0 where no /proc tells."""
        return self._memory("VmRSS")

    def _memory(self, name):
        status = Path(f"/proc/{self.process.pid}/status")
        if not status.exists():
            return 0
        return int(re.search(rf"{name}:\s+(\d+) kB", status.read_text())[1]) * 1024

    def logged(self, *texts):
        """Wait until the log holds all texts, and return it: calls are logged after their end."""
        wait_until(
            lambda: all(text in self.log.read_text() for text in texts), tell=self.log.read_text
        )
        return self.log.read_text()

    def stop(self):
        """Drain as an operator does, and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return code

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


@contextmanager
def running(*arguments, directory=None, environment=None, umask=0o022):
    """Run a server in a directory of its own, short enough for a socket's path.

    ``{directory}`` in an argument stands for it.
    """
    made = Path(tempfile.mkdtemp(prefix="p")) if directory is None else directory
    product = Product(made, arguments, environment or {}, umask)
    try:
        yield product.wait_ready()
    finally:
        product.kill()
        if directory is None:
            shutil.rmtree(made)


def is_serving(channel):
    answer = health_pb2_grpc.HealthStub(channel).Check(
        health_pb2.HealthCheckRequest(), timeout=PATIENCE
    )
    return answer.status == health_pb2.HealthCheckResponse.SERVING
