"""A command as a person sees it: on a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Terminal:
    """A command on a pseudo-terminal of 100 columns; ``stderr`` may be somewhere else."""

    def __init__(self, arguments, *, stderr=None, **environment):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "flue_grpc", *arguments],
            stdin=slave, stdout=slave, stderr=stderr or slave, cwd=ROOT, start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "PAGER": "", **environment},
        )  # fmt: skip
        os.close(slave)
        self.output = ""

    def read_until(self, text):
        while text not in self.output and self._read():
            pass
        assert text in self.output
        return self.output

    def finish(self):
        while self._read():
            pass
        os.close(self._master)
        return self.process.wait(timeout=60), self.output

    def _read(self):
        try:
            data = os.read(self._master, 65_536)
        except OSError:
            # Linux says so when nobody has the other end open any more.
            return False
        self.output += data.decode("utf-8", "replace")
        return bool(data)
