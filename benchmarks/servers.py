"""The product and the echo server as processes of their own, for as long as a ``with`` lasts."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from flue.agentindex.v1 import agent_index_pb2, agent_index_pb2_grpc
from flue.store.v1 import store_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OPTIONS = [("grpc.max_receive_message_length", 36 << 20), ("grpc.use_local_subchannel_pool", 1)]
_WAIT_SECONDS = 600.0


class Product:
    """A running ``flue-grpc serve`` and its stubs."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        """Connect to ``address``."""
        self.process = process
        self.address = address
        self.channel = grpc.insecure_channel(address, OPTIONS)
        self.index = agent_index_pb2_grpc.AgentIndexStub(self.channel)
        self.store = store_pb2_grpc.StoreStub(self.channel)

    def another(self) -> Product:
        """Return a second client, with a connection of its own."""
        return Product(self.process, self.address)

    def swept(self) -> None:
        """Wait until the first sweep is complete."""
        self._wait(lambda: self.index.Snapshot(agent_index_pb2.SnapshotRequest(limit=1)))

    def ranked(self) -> None:
        """Wait until the RANKED index has caught up."""
        request = agent_index_pb2.SearchRequest(
            query="nothing-has-this", mode=agent_index_pb2.SEARCH_MODE_RANKED
        )
        self._wait(lambda: self.index.Search(request))

    def memory_mib(self) -> float:
        """Return the resident memory of the server."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise LookupError(self.process.pid)

    def _wait(self, ask: Callable[[], Iterator[object]]) -> None:
        pause = threading.Event()
        for _ in range(int(_WAIT_SECONDS / 0.05)):
            if not any(response.building for response in ask()):  # type: ignore[attr-defined]
                return
            pause.wait(0.05)
        raise TimeoutError("the index is still being built")


@contextmanager
def product(home: Path, *arguments: str, data: Path | None = None) -> Iterator[Product]:
    """Serve ``home`` on a temporary Unix socket, without RANKED unless asked for."""
    with tempfile.TemporaryDirectory(prefix="flue-b") as temporary:
        directory = data or Path(temporary) / "data"
        address = f"unix:{temporary}/s"
        command = [sys.executable, "-m", "flue_grpc", "serve", "--listen", address]
        command += ["--home", str(home), "--data-dir", str(directory), "--access-log", "off"]
        with _process([*command, *arguments]) as process:
            started = Product(process, address)
            grpc.channel_ready_future(started.channel).result(timeout=60)
            yield started
            started.channel.close()


@contextmanager
def echo() -> Iterator[Callable[[int], bytes]]:
    """Serve the floor of a unary call: a function that fetches as many bytes as it is told."""
    with tempfile.TemporaryDirectory(prefix="flue-b") as temporary:
        address = f"unix:{temporary}/e"
        script = str(Path(__file__).with_name("echo_server.py"))
        with _process([sys.executable, script, address]):
            channel = grpc.insecure_channel(address, OPTIONS)
            grpc.channel_ready_future(channel).result(timeout=60)
            call = channel.unary_unary("/bench.Echo/Call")
            yield lambda size: call(str(size).encode())
            channel.close()


@contextmanager
def spinner() -> Iterator[None]:
    """Keep one core busy at normal priority: the floor of what a sweep does to calls."""
    script = "import sys\nprint('ready', flush=True)\nwhile True: pass"
    with _process([sys.executable, "-c", script]):
        yield


@contextmanager
def _process(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Run until the ``with`` ends; begin once it has printed its first line."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError(f"{command[1:3]} did not start")
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=60)
