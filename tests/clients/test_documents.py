"""What docs/clients.md shows works as pasted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "clients.md").read_text("utf-8")


def block(language):
    [found] = re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    return found


@pytest.fixture
def runtime(base, home):
    """A runtime directory with a server on its default socket."""
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(base)}
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


def test_the_python_lines(runtime):
    lines = shown([sys.executable, "-c", block("python")], runtime).splitlines()
    assert [line.split()[0] for line in lines] == ["codex", "claude", "pi"]


def test_the_tools_by_reflection(runtime):
    if shutil.which("go") is None and not os.environ.get("CI"):
        pytest.skip("go is not installed, and grpcurl is built with it")
    install = [ROOT / "scripts" / "grpcurl"]
    grpcurl = subprocess.run(install, check=True, capture_output=True, text=True).stdout.strip()
    path = f"{Path(grpcurl).parent}:{Path(sys.executable).parent}:{runtime['PATH']}"
    commands = re.split(r"\n(?=buf)", block("sh"))
    names = []
    for command in commands:
        out = shown(["bash", "-ec", command], {**runtime, "PATH": path})
        names.append("hidden_subagents" if '"hidden_subagents"' in out else "hiddenSubagents")
        assert '"building": false' in out or "building" not in out
    assert names == ["hidden_subagents", "hiddenSubagents"]
