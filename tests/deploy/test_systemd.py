"""The systemd units, as systemd itself reads them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from flue_grpc.limits import DRAIN_SECONDS
from tests.tools import tool

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
NAMES = ["flue-grpc.service", "flue-grpc@.service"]


def settings(name):
    text = (UNITS / name).read_text().replace("\\\n", " ")
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


def analyze(tmp_path, *argv):
    environment = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)}
    return subprocess.run(
        [tool("systemd-analyze"), *argv],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "scope"), [("flue-grpc.service", "--user"), ("flue-grpc@.service", "--system")]
)
def test_systemd_finds_no_fault_with_a_unit(tmp_path, name, scope):
    text = (UNITS / name).read_text()
    program = re.search(r"^ExecStart=(\S+)", text, re.MULTILINE)[1]
    (tmp_path / name).write_text(text.replace(program, sys.executable))
    done = analyze(tmp_path, scope, "--man=no", "--recursive-errors=no", "verify", tmp_path / name)
    assert (done.returncode, name in done.stderr) == (0, False), done.stderr


def test_the_system_unit_is_hardened(tmp_path):
    """systemd's own exposure level, in tenths; 0 is nothing exposed, 96 a bare unit."""
    unit = UNITS / "flue-grpc@.service"
    done = analyze(tmp_path, "security", "--offline=yes", "--threshold=15", unit)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_the_drain_has_its_time_and_one_signal(name):
    unit = settings(name)
    assert unit["Type"] == "exec"
    assert unit["KillMode"] == "mixed"
    assert float(unit["TimeoutStopSec"]) > 2 * DRAIN_SECONDS
    assert unit["UMask"] == "0077"


UNDER_MDWE = """
import ctypes, os, sys
refuse_exec_gain = 1
if ctypes.CDLL(None).prctl(65, refuse_exec_gain, 0, 0, 0):
    sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_the_server_needs_no_memory_that_can_be_written_and_executed():
    """What MemoryDenyWriteExecute= forbids, forbidden here by the same kernel switch."""
    program = Path(sys.executable).with_name("flue-grpc")
    with tempfile.TemporaryDirectory(prefix="m") as name:
        given = ["--home", name, "--data-dir", f"{name}/d", "--listen", f"unix:{name}/s"]
        process = subprocess.Popen(
            [sys.executable, "-c", UNDER_MDWE, program, "serve", *given],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            line = process.stdout.readline()
            if not line and process.wait(60) == 77:
                pytest.skip("the kernel is older than 6.3")
            assert line == f"flue-grpc listens on unix:{name}/s\n"
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
