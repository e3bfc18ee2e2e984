"""The process that is killed while it indexes: an AgentIndex and its worker."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Event

from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.settings import IndexSettings

# Far below what the homes of the tests hold: the work leaves the process often.
WORKER_BYTES = 60_000


def settings(home, directory, worker_bytes=WORKER_BYTES):
    return IndexSettings(
        str(home), Path(directory), sweep_interval=0.02, worker_bytes=int(worker_bytes)
    )


def main(arguments):
    """Index a home until somebody ends the process, or until all is done."""
    home, directory, worker_bytes, until = arguments
    waiting = Event()
    with AgentIndex.open(settings(home, directory, worker_bytes)) as index:
        sys.stdout.write("open\n")
        sys.stdout.flush()
        while until == "killed" or index.building or index.lags:
            index.poke()
            waiting.wait(0.01)
    return 0
