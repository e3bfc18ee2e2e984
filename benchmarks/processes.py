"""Whole processes: their CPU time and peak memory, children included."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LOOK_SECONDS = 0.02


@dataclass(frozen=True)
class Finished:
    """A whole process: wall and CPU seconds (user and system), peak memory in MiB.

    Children that it waited for are included; the peak is the largest sum of the peaks
    of those that ran at once, so at least the true one.
    """

    wall: float
    cpu: float
    peak_mib: float
    output: str


@dataclass(frozen=True)
class Command:
    """A program to run to its end; ``environment`` is added to the current one."""

    arguments: Sequence[str]
    environment: dict[str, str] = field(default_factory=dict)
    codes: tuple[int, ...] = (0,)

    def run(self) -> Finished:
        """Run it; raise CalledProcessError when it ends with none of ``codes``."""
        start = time.perf_counter()
        process = subprocess.Popen(
            list(self.arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | self.environment,
            text=True,
        )
        with Peak(process.pid) as peak:
            output = process.stdout.read() if process.stdout else ""
            _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.stdout:
            process.stdout.close()
        if process.returncode not in self.codes:
            raise subprocess.CalledProcessError(process.returncode, list(self.arguments))
        return Finished(wall, usage.ru_utime + usage.ru_stime, peak.mib, output)


class Peak:
    """Watches the memory of a process and of all below it, while the ``with`` lasts.

    What wait4 reports would do for one process, but there it begins with the size of
    the parent that started it.
    """

    def __init__(self, pid: int) -> None:
        """Watch ``pid``."""
        self.mib = 0.0
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """End."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.mib = max(self.mib, sum(map(_peak_mib, tree(self._pid))))
            if self._over.wait(_LOOK_SECONDS):
                return


def tree(pid: int) -> Iterator[int]:
    """Yield a process and all below it."""
    yield pid
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = " ".join((thread / "children").read_text() for thread in threads)
    except OSError:
        return
    for child in children.split():
        yield from tree(int(child))


def _peak_mib(pid: int) -> float:
    return _status_mib(pid, "VmHWM:")


def resident_mib(pid: int) -> float:
    """Return the memory that a process holds now, 0 when it is gone."""
    return _status_mib(pid, "VmRSS:")


def _status_mib(pid: int, name: str) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a running process has used, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | 2)  # the clock that clock_getcpuclockid(3) names


def python(*arguments: str) -> Command:
    """Return this interpreter with ``arguments``."""
    return Command([sys.executable, *arguments])
