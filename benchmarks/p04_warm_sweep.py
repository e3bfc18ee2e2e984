"""P4: a sweep that finds nothing changed, against asking for the state of each known file."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from harness import Goal, compare, interleave
from homes import home

from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.settings import IndexSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield the ratio; that no file is opened is a test (``test_a_warm_sweep_opens_nothing``)."""
    sessions = scale.pick(5_000, 500)
    path = home(scale.work, sessions // 250, sessions)
    known = [str(file) for file in path.rglob("*.jsonl")]
    with tempfile.TemporaryDirectory(dir=scale.work) as directory:
        settings = IndexSettings(
            home=str(path), directory=Path(directory), ranked=False, sweep_interval=3600
        )
        with AgentIndex.open(settings) as index:
            _finished(index, 1)

            def warm() -> float:
                wanted = index.sweeps.finished + 1
                start = time.process_time()
                index.refresh_all()
                _finished(index, wanted)
                return (time.process_time() - start) * 1000

            def stat() -> float:
                start = time.process_time()
                for file in known:
                    os.stat(file)  # noqa: PTH116
                return (time.process_time() - start) * 1000

            ours, floor = interleave(
                scale.rounds * 3, ("warm sweep", "ms CPU", warm), ("os.stat loop", "ms CPU", stat)
            )
    yield compare(Goal("P4", f"warm sweep of {len(known)} files", "at most", 3.0), ours, floor)


def _finished(index: AgentIndex, wanted: int) -> None:
    pause = Event()
    while index.sweeps.finished < wanted:
        pause.wait(0.02)
