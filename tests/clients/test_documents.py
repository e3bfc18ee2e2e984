"""What docs/clients.md shows works as pasted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from flue_grpc.config import load
from tests.tools import grpcurl

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "clients.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)


PLACE, CALLS = blocks("sh")


@pytest.fixture(params=["XDG_RUNTIME_DIR", "XDG_DATA_HOME"])
def runtime(base, home, request):
    """A server on its default socket, in a runtime directory or beside its data."""
    environment = {**os.environ, request.param: str(base)}
    with (base / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "flue_grpc", "serve", "--home", str(home)],
            stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT, env=environment,
        )  # fmt: skip
    assert process.stdout.readline() == f"flue-grpc listens on unix:{base}/flue-grpc/flue.sock\n"
    yield environment
    process.terminate()
    process.communicate(timeout=30)
    assert process.returncode == 0


def shown(command, environment):
    """Run a command until the first sweep is complete and it shows every session."""
    while True:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, cwd=ROOT
        )
        if "Summarise the refund rules" in done.stdout:
            return done.stdout


@pytest.mark.parametrize(
    ("variables", "socket"),
    [
        ({}, "/home/dev/.local/share/flue-grpc/flue.sock"),
        ({"XDG_RUNTIME_DIR": "", "XDG_DATA_HOME": "/d"}, "/d/flue-grpc/flue.sock"),
        ({"XDG_RUNTIME_DIR": "/r", "XDG_DATA_HOME": "/d"}, "/r/flue-grpc/flue.sock"),
    ],
    ids=["home", "data", "runtime"],
)
def test_the_socket_is_where_a_server_puts_it(variables, socket):
    environment = {"HOME": "/home/dev", **variables}
    script = f'{PLACE}printf %s "$SOCKET"'
    done = subprocess.run(
        ["/bin/bash", "-euc", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == socket
    assert load({}, environment).settings.listen == (f"unix:{socket}",)


def test_the_python_lines(runtime):
    lines = shown([sys.executable, "-c", *blocks("python")], runtime).splitlines()
    assert [line.split()[0] for line in lines] == ["codex", "claude", "pi"]


def test_the_tools_by_reflection(runtime):
    path = f"{grpcurl().parent}:{Path(sys.executable).parent}:{runtime['PATH']}"
    commands = re.split(r"\n(?=buf)", CALLS)
    names = []
    for command in commands:
        out = shown(["bash", "-ec", PLACE + command], {**runtime, "PATH": path})
        names.append("hidden_subagents" if '"hidden_subagents"' in out else "hiddenSubagents")
        assert '"building": false' in out or "building" not in out
    assert names == ["hidden_subagents", "hiddenSubagents"]
