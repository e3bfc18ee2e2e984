"""agentsview: a cold sync, and what its server answers over HTTP, beside the product over gRPC.

Both keep an index of the same home; agentsview copies the texts into its own.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from functools import partial
from os import environ
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from harness import Goal, Series, absolute, compare, interleave
from homes import home, size_of
from latency import p50, sample
from processes import Command, python
from servers import product

from flue.agentindex.v1 import agent_index_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness import Figure, Scale
    from servers import Product

_QUIET = {"AGENTSVIEW_TELEMETRY_ENABLED": "0", "DO_NOT_TRACK": "1"}
_LINE = '{"type":"user","message":{"role":"user","content":"go on"}}\n'


def measure(scale: Scale, peers: Path) -> Iterator[Figure]:
    """Yield the sweep's cost, then the latencies of the same questions."""
    program = str(peers / "agentsview/bin/agentsview")
    path = home(scale.work, *((600, 1000) if scale.name == "full" else (60, 100)))
    with tempfile.TemporaryDirectory(dir=scale.work) as temporary:
        data = Path(temporary) / "data"
        yield from _sweeps(scale, program, path, data)
        with _served(program, path, data) as get, product(path) as served:
            served.ranked()
            yield from _questions(scale, get, served)
        yield from _tail(program, scale, Path(temporary))


def _sweeps(scale: Scale, program: str, path: Path, data: Path) -> Iterator[Figure]:
    size = size_of(path) / 1e6
    peaks: list[float] = []

    def sync() -> float:
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir()
        environment = _environment(path, data) | {"AGENTSVIEW_NO_DAEMON": "1"}
        done = Command([program, "sync"], environment).run()
        peaks.append(done.peak_mib)
        return done.cpu * 1000 / size

    script = python("benchmarks/cold_sweep.py", str(path))
    ours, theirs = interleave(
        scale.pick(2, 1),
        ("cold sweep", "ms CPU per MB", lambda: script.run().cpu * 1000 / size),
        ("sync", "ms CPU per MB", sync),
        warm_up=0,
    )
    yield compare(Goal("P1", f"against agentsview, {size:.0f} MB", "at most", 0.05), ours, theirs)
    yield absolute(Goal("agentsview", "peak of its sync"), Series("sync", "MiB", tuple(peaks)))


def _questions(scale: Scale, get: Callable[[str], object], served: Product) -> Iterator[Figure]:
    newest = next(iter(served.index.Snapshot(pb.SnapshotRequest(limit=1)))).summaries[0]
    listed = get("sessions?limit=1&include_one_shot=true")
    theirs = listed["sessions"][0]["id"]  # type: ignore[index]
    page = pb.ReadPageRequest(
        tool=newest.tool, id=newest.id, direction=pb.DIRECTION_BACKWARD, limit=100
    )
    word = pb.SearchRequest(query="timeout", limit=20)
    nothing = pb.SearchRequest(query="qzxjvw gone", max_bytes=1 << 40)
    ranked = pb.SearchRequest(query="timeout", limit=20, mode=pb.SEARCH_MODE_RANKED)
    absent = quote("qzxjvw gone")
    questions: tuple[tuple[str, Callable[[], object], str], ...] = (
        (
            "list 50",
            lambda: list(served.index.Snapshot(pb.SnapshotRequest(limit=50))),
            "sessions?limit=50",
        ),
        (
            "last 100 messages",
            lambda: served.index.ReadPage(page),
            f"sessions/{theirs}/messages?limit=100&direction=desc",
        ),
        (
            "substring, common, 20",
            lambda: list(served.index.Search(word)),
            "search/content?pattern=timeout&limit=20",
        ),
        (
            "substring, nowhere",
            lambda: list(served.index.Search(nothing)),
            f"search/content?pattern={absent}&limit=20",
        ),
        (
            "ranked, common, 20",
            lambda: list(served.index.Search(ranked)),
            "search?q=timeout&limit=20",
        ),
    )
    for what, ask, url in questions:
        ours, other = interleave(
            scale.rounds,
            ("gRPC", "ms", lambda ask=ask: p50(sample(ask, count=10))),
            ("HTTP", "ms", lambda url=url: p50(sample(partial(get, url), count=3))),
        )
        yield compare(Goal("agentsview", f"{what}, p50"), ours, other)


def _tail(program: str, scale: Scale, temporary: Path) -> Iterator[Figure]:
    """Yield the time from a line in a transcript to the line of ``session watch``."""
    path, data = temporary / "home", temporary / "tail-data"
    source = home(scale.work, 20, 33)
    shutil.copytree(source, path)
    data.mkdir()
    file = max(path.rglob(".claude/**/*.jsonl"), key=lambda one: one.stat().st_mtime)
    with _served(program, path, data):
        watch = subprocess.Popen(
            [program, "session", "watch", file.stem],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environ | _environment(path, data),
        )
        seen: list[float] = []
        reader = threading.Thread(
            target=lambda: seen.extend(time.perf_counter() for _ in watch.stdout or ()), daemon=True
        )
        reader.start()
        delays: list[float] = []
        for _ in range(scale.pick(10, 4)):
            time.sleep(1.7)
            known, start = len(seen), time.perf_counter()
            with file.open("a", encoding="utf-8") as out:
                out.write(_LINE)
            while len(seen) == known and time.perf_counter() - start < 30:
                time.sleep(0.005)
            delays.append((time.perf_counter() - start) * 1000)
        watch.terminate()
        watch.wait()
    yield absolute(
        Goal("agentsview", "transcript to its watcher, p50"), Series("watch", "ms", tuple(delays))
    )


@contextmanager
def _served(program: str, path: Path, data: Path) -> Iterator[Callable[[str], object]]:
    """Run its server on a free port; yield what asks it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [program, "serve", "--port", str(port), "--no-browser", "--no-update-check"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environ | _environment(path, data),
    )
    base = f"http://127.0.0.1:{port}/api/v1/"

    def get(url: str) -> object:
        with urllib.request.urlopen(base + url, timeout=60) as answer:
            return json.load(answer)

    try:
        for _ in range(1200):
            try:
                get("sessions?limit=1")
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        time.sleep(1)
        yield get
    finally:
        server.terminate()
        server.wait()


def _environment(path: Path, data: Path) -> dict[str, str]:
    return _QUIET | {"HOME": str(path), "AGENTSVIEW_DATA_DIR": str(data)}
