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
from processes import cpu_seconds, resident_mib

from flue.agentindex.v1 import agent_index_pb2, agent_index_pb2_grpc
from flue.store.v1 import store_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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

    def cpu_seconds(self) -> float:
        """Return the CPU time that the server has used, without its workers."""
        return cpu_seconds(self.process.pid)

    def ranked(self) -> None:
        """Wait until the RANKED index has caught up."""
        request = agent_index_pb2.SearchRequest(
            query="nothing-has-this", mode=agent_index_pb2.SEARCH_MODE_RANKED
        )
        self._wait(lambda: self.index.Search(request))

    def memory_mib(self) -> float:
        """Return the resident memory of the server."""
        return resident_mib(self.process.pid)

    def _wait(self, ask: Callable[[], Iterator[object]]) -> None:
        pause = threading.Event()
        for _ in range(int(_WAIT_SECONDS / 0.05)):
            if not any(response.building for response in ask()):  # type: ignore[attr-defined]
                return
            pause.wait(0.05)
        raise TimeoutError("the index is still being built")


@contextmanager
def product(
    home: Path,
    *arguments: str,
    data: Path | None = None,
    environment: dict[str, str] | None = None,
    program: Sequence[str] = ("-m", "flue_grpc"),
) -> Iterator[Product]:
    """Serve ``home`` on a temporary Unix socket; ``arguments`` go to the server."""
    with tempfile.TemporaryDirectory(prefix="flue-b") as temporary:
        directory = data or Path(temporary) / "data"
        address = f"unix:{temporary}/s"
        command = [sys.executable, *program, "serve", "--listen", address]
        command += ["--home", str(home), "--data-dir", str(directory), "--access-log", "off"]
        with process([*command, *arguments], environment) as running:
            started = Product(running, address)
            grpc.channel_ready_future(started.channel).result(timeout=60)
            yield started
            started.channel.close()


@contextmanager
def without_scanner(home: Path, work: Path, *arguments: str) -> Iterator[Product]:
    """Serve as if the optional scanner of SUBSTRING were not installed."""
    hidden = work / "no-scanner"
    hidden.mkdir(exist_ok=True)
    (hidden / "hyperscan.py").write_text("raise ImportError\n")
    with product(home, *arguments, environment={"PYTHONPATH": str(hidden)}) as served:
        yield served


@contextmanager
def echo() -> Iterator[Callable[[int], bytes]]:
    """Serve the floor of a unary call: a function that fetches as many bytes as it is told."""
    with tempfile.TemporaryDirectory(prefix="flue-b") as temporary:
        address = f"unix:{temporary}/e"
        script = str(Path(__file__).with_name("echo_server.py"))
        with process([sys.executable, script, address]):
            channel = grpc.insecure_channel(address, OPTIONS)
            grpc.channel_ready_future(channel).result(timeout=60)
            call = channel.unary_unary("/bench.Echo/Call")
            yield lambda size: call(str(size).encode())
            channel.close()


@contextmanager
def single_items(store: Path) -> Iterator[store_pb2_grpc.StoreStub]:
    """Serve the messages of a Store's file one by one, the floor of what batches gain."""
    with tempfile.TemporaryDirectory(prefix="flue-b") as temporary:
        address = f"unix:{temporary}/s"
        script = str(Path(__file__).with_name("single_item_server.py"))
        with process([sys.executable, script, address, str(store)]):
            channel = grpc.insecure_channel(address, OPTIONS)
            grpc.channel_ready_future(channel).result(timeout=60)
            yield store_pb2_grpc.StoreStub(channel)
            channel.close()


@contextmanager
def spinner() -> Iterator[None]:
    """Keep one core busy at normal priority: the floor of what a sweep does to calls."""
    script = "import sys\nprint('ready', flush=True)\nwhile True: pass"
    with process([sys.executable, "-c", script]):
        yield


@contextmanager
def process(
    command: list[str], environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run until the ``with`` ends; begin once it has printed its first line."""
    running = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"} | (environment or {}),
    )
    try:
        assert running.stdout is not None
        if not running.stdout.readline():
            raise RuntimeError(f"{command[1:3]} did not start")
        yield running
    finally:
        running.terminate()
        running.communicate(timeout=60)


@contextmanager
def load(served: Product, kind: str, count: int, subject: str) -> Iterator[None]:
    """Keep clients in a process of their own busy with ``served``, see ``load.py``."""
    script = str(Path(__file__).with_name("load.py"))
    with process([sys.executable, script, served.address, kind, str(count), subject]):
        yield
