"""The server's side of the sweep worker (techniques §3)."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from flue_grpc.agentindex.worker_messages import WorkerReport
from flue_grpc.limits import WORKER_STOP_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flue_grpc.agentindex.worker_messages import WorkerOrder

_log = logging.getLogger(__name__)


class WorkerProcess:
    """One running worker; it ends when it is done, and when it is stopped."""

    def __init__(self, order: WorkerOrder) -> None:
        """Start it and hand the order over. Raises OSError when that fails."""
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "flue_grpc.agentindex.sweep_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": _import_path()},
            # Out of the terminal's group: Ctrl-C is for the server, which ends the worker.
            process_group=0,
        )
        assert process.stdin is not None  # noqa: S101 - it was asked for as a pipe
        assert process.stdout is not None  # noqa: S101 - it was asked for as a pipe
        self._process, self._input, self._output = process, process.stdin, process.stdout
        try:
            self._input.write(msgspec.json.encode(order) + b"\n")
            self._input.flush()
        except OSError:
            self.stop()
            self._output.close()
            raise

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def reports(self) -> Iterator[WorkerReport]:
        """Yield what the worker reports until its output ends, a torn last line left out."""
        for line in self._output:
            if line.endswith(b"\n"):
                yield msgspec.json.decode(line, type=WorkerReport)

    def wait(self) -> bool:
        """Wait for the end; return whether the order was carried out."""
        code = self._process.wait()
        self._output.close()
        self.stop()
        if code:
            _log.warning("the sweep worker ended with %d", code)
        return code == 0

    def stop(self) -> None:
        """Make it end, by force if need be; safe from any thread, at any time."""
        with suppress(OSError):
            self._input.close()
        try:
            self._process.wait(WORKER_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _import_path() -> str:
    """Let the worker import this package from where this process has it."""
    here = str(Path(__file__).absolute().parents[2])
    return os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
