"""Kills in the middle of a transaction of the index file, in whatever process that runs.

As a program it is the sweep worker with a doom upon it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from flue_grpc.agentindex import index_rows, ranked_fill, sweep_worker

# What is called within a transaction of each kind, and leaves it half done.
STEPS = {"sweep": (index_rows, "write_tables"), "ranked": (ranked_fill.Writer, "_write_rows")}


@dataclass(frozen=True)
class Doom:
    """Whom the ``call``-th step of a ``kind`` of transaction kills: "index" or "worker".

    It is written to the file ``mark`` before it falls.
    """

    kind: str
    victim: str
    call: int
    mark: str

    def lie_in_wait(self):
        """Let it fall in this process, or from this worker on the index that started it."""
        owner, name = STEPS[self.kind]
        plain = getattr(owner, name)
        is_worker = __name__ == "__main__"
        victim = os.getppid() if is_worker and self.victim == "index" else os.getpid()
        calls = 0

        def deadly(first, *arguments):
            nonlocal calls
            done = plain(first, *arguments)
            calls += 1
            if calls == self.call and getattr(first, "db", first).in_transaction:
                with Path(self.mark).open("a") as mark:
                    mark.write(f"{self.kind} {self.victim}\n")
                os.kill(victim, signal.SIGKILL)
            return done

        setattr(owner, name, deadly)

    def await_in_worker(self, directory):
        """Let it fall in the workers that this process starts; ``directory`` is for a file."""
        launcher = Path(directory) / "doomed-worker"
        program = f'exec "{sys.executable}" -m tests.torture.doom'
        launcher.write_text(f"#!/bin/sh\n{program} '{json.dumps(asdict(self))}'\n")
        launcher.chmod(0o700)
        sys.executable = str(launcher)


if __name__ == "__main__":
    Doom(**json.loads(sys.argv[1])).lie_in_wait()
    sweep_worker.main()
