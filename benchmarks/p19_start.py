"""P19: from the start of the process to SERVING, with nothing and with many indexed sessions."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from harness import Goal, Series, absolute, compare, interleave
from homes import home
from servers import product

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield the time of an empty server, and the ratio of a full one to it."""
    sessions = scale.pick(5_000, 500)
    empty, full = scale.work / "home-none", home(scale.work, sessions // 250, sessions)
    empty.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=scale.work) as nothing,
        tempfile.TemporaryDirectory(dir=scale.work) as indexed,
    ):
        with product(full, data=Path(indexed) / "data") as served:
            served.ranked()
        spent: dict[Path, list[float]] = {full: [], empty: []}
        many, none = interleave(
            scale.rounds,
            (
                f"{sessions} sessions",
                "s",
                lambda: _start(full, Path(indexed) / "data", spent[full]),
            ),
            ("empty", "s", lambda: _start(empty, Path(nothing) / "data", spent[empty])),
        )
    yield absolute(Goal("P19", "start to SERVING, empty", "at most", 0.6), none)
    yield compare(Goal("P19", f"start with {sessions} sessions", "at most", 1.2), many, none)
    cpu = [Series("until SERVING", "s CPU", tuple(values[1:])) for values in spent.values()]
    yield compare(Goal("P19", f"CPU of the start with {sessions} sessions"), *cpu)


def _start(path: Path, data: Path, spent: list[float]) -> float:
    start = time.perf_counter()
    with product(path, data=data) as served:
        stub = health_pb2_grpc.HealthStub(served.channel)
        while not _is_serving(stub):
            time.sleep(0.002)
        spent.append(served.cpu_seconds())
        return time.perf_counter() - start


def _is_serving(stub: health_pb2_grpc.HealthStub) -> bool:
    try:
        answer = stub.Check(health_pb2.HealthCheckRequest())
    except grpc.RpcError:
        return False
    return answer.status == health_pb2.HealthCheckResponse.SERVING
