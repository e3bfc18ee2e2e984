"""The tour of the README: each command gives, to the letter, what is printed below it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from flue.agentindex.v1 import agent_index_pb2
from flue.store.v1 import store_pb2
from tests.waiting import wait_until
from tests.wire.conftest import Flue

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()
STEP = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def steps():
    blocks = re.findall(r"^```console\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    return [step for block in blocks for step in STEP.findall(block)]


def is_busy(index):
    return index.building or index.lags


@pytest.fixture(scope="module")
def served():
    with tempfile.TemporaryDirectory(prefix="r") as name:
        home = ROOT / "examples" / "home"
        flue = Flue(Path(name), home=home, sweep_interval_seconds=3600).start()
        index = flue.server.services.index
        wait_until(lambda: index.file_events == "events" and not is_busy(index))
        yield flue
        flue.stop()


@pytest.mark.parametrize(("command", "output"), steps())
def test_a_command_prints_what_the_readme_shows(served, command, output):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command],
        env={
            "HOME": str(served.data),
            "PATH": path,
            "SOCKET": str(served.socket),
            "FLUE_GRPC_LISTEN": f"unix:{served.socket}",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.returncode) == (output, 0), done.stderr


def test_the_tour_has_its_steps():
    assert len(steps()) == 7


@pytest.mark.parametrize("contract", [agent_index_pb2, store_pb2])
def test_every_rpc_is_in_the_table(contract):
    (service,) = contract.DESCRIPTOR.services_by_name.values()
    for method in service.methods:
        assert f"`{method.name}`" in TEXT, method.name


def test_every_file_that_is_named_exists():
    for name in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / name).is_file(), name
