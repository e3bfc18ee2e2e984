"""The process that is killed while it indexes: an AgentIndex and its worker."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from threading import Event

from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.settings import IndexSettings
from tests.torture.doom import Doom
from tests.waiting import wait_until

# Far below what the homes of the tests hold: the work leaves the process often.
WORKER_BYTES = 60_000
NO_WORKER = 1 << 40


def settings(home, directory, worker_bytes=WORKER_BYTES):
    return IndexSettings(
        str(home), Path(directory), sweep_interval=0.02, worker_bytes=int(worker_bytes)
    )


def main(arguments):
    """Index a home until somebody ends the process, or until all is done."""
    home, directory, worker_bytes, until = arguments
    _index(settings(home, directory, worker_bytes), until)
    return 0


def doomed(arguments):
    """Index a home until a doom falls on this process, or on its worker if it has one."""
    home, directory, worker_bytes, doom = arguments
    chosen = settings(home, directory, worker_bytes)
    awaited = Doom(**json.loads(doom))
    if chosen.worker_bytes < NO_WORKER:
        awaited.await_in_worker(Path(home).parent)
    else:
        awaited.lie_in_wait()
    _index(chosen, "killed")


def _index(chosen, until):
    with AgentIndex.open(chosen) as index:
        sys.stdout.write("open\n")
        sys.stdout.flush()
        if until == "done":
            wait_until(lambda: index.poke() or not (index.building or index.lags))
            return
        waiting = Event()
        while True:
            index.poke()
            waiting.wait(0.01)
