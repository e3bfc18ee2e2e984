"""One cold sweep and nothing else: ``python benchmarks/cold_sweep.py HOME``.

Prints the number of indexed transcripts. The index lies in a temporary directory.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from threading import Event

from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.settings import IndexSettings


def main() -> None:
    """Sweep until the first sweep is complete."""
    pause = Event()
    with tempfile.TemporaryDirectory(prefix="flue-b") as directory:
        settings = IndexSettings(home=sys.argv[1], directory=Path(directory), ranked=False)
        with AgentIndex.open(settings) as index:
            while index.building:
                pause.wait(0.02)
            print(index.transcripts)


if __name__ == "__main__":
    main()
