"""Lives of the product that begin by fork, so that hundreds of kills take seconds each dozen.

Run as a program it imports the product once, then makes one process per order. Such a
process is what a start by hand makes, less the time that Python takes to import it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path

PRELOADED = (
    "flue_grpc.server",
    "flue_grpc.cli",
    "flue_grpc.commands.serve",
    "flue_grpc.commands.store_commands",
    "flue_grpc.store.importing",
)
ROOT = Path(__file__).parents[2]


class Life:
    """One process; ``kill`` it or let it end, then ``wait``."""

    def __init__(self, output):
        self._output = output
        self.pid = int(self._expect("pid "))
        self.code = None

    def line(self):
        """Read the next line it prints; None when it has ended."""
        text = self._output.readline().decode()
        if not text.startswith("exit "):
            assert text, "the nursery has ended"
            return text.rstrip("\n")
        self.code = int(text.removeprefix("exit "))
        return None

    def kill(self):
        """End it as a power cut of the process would: with SIGKILL."""
        os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def terminate(self):
        os.kill(self.pid, signal.SIGTERM)
        return self.wait()

    def wait(self):
        """Return its exit code, negative for a signal."""
        while self.code is None:
            self.line()
        return self.code

    def _expect(self, beginning):
        text = self._output.readline().decode()
        assert text.startswith(beginning), text
        return text.removeprefix(beginning)


class Nursery:
    """Makes one life at a time."""

    def __init__(self, log):
        command = [sys.executable, "-m", "tests.torture.nursery"]
        path = os.pathsep.join((str(ROOT), str(ROOT / "generated" / "python")))
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": path},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

    def run(self, function, *arguments):
        """Call ``function``, named as ``module:name``, with a list of strings."""
        order = json.dumps({"function": function, "arguments": arguments})
        self._process.stdin.write(order.encode() + b"\n")
        self._process.stdin.flush()
        return Life(self._process.stdout)

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def _raise_one(order):
    child = os.fork()
    if child == 0:
        os.write(1, f"pid {os.getpid()}\n".encode())
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        module, _, name = order["function"].partition(":")
        code = 1
        try:
            code = getattr(import_module(module), name)(order["arguments"])
        except Exception:  # noqa: BLE001 - told to whoever looks after this life
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            sys.stdout.flush()
            os._exit(code or 0)
    # Not reaped yet: its number must mean nobody else while it may still be killed.
    ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
    os.write(1, f"exit {code}\n".encode())
    return child


def _main():
    for name in PRELOADED:
        import_module(name)
    last = None
    for line in sys.stdin:
        if last is not None:
            os.waitpid(last, 0)
        last = _raise_one(json.loads(line))


if __name__ == "__main__":
    _main()
