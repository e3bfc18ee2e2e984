"""Every command line of docs/operations.md that begins with `$`, in order, in one shell."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from flue_grpc.commands.connection import add_connection
from flue_grpc.observability.instruments import CALL_INSTRUMENTS, PRODUCT_INSTRUMENTS
from flue_grpc.observability.prometheus import prometheus_name
from flue_grpc.settings import all_settings
from tests.wire.security.process import lay_home

DOCUMENT = Path(__file__).parents[2] / "docs" / "operations.md"
TEXT = DOCUMENT.read_text()


def commands():
    blocks = re.findall(r"^```console\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture
def home():
    with tempfile.TemporaryDirectory(prefix="o") as name:
        (Path(name) / "run").mkdir(mode=0o700)
        lay_home(Path(name))
        yield Path(name)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_every_command_works_as_written(home):
    script = "set -euo pipefail\nset -m\ntrap 'kill %1 2>/dev/null; wait' EXIT\n"
    script += "\n".join(commands()) + "\necho the end\n"
    for port in ("50051", "9464"):
        script = script.replace(port, free_port())
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=home,
        env={"HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run"), "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.endswith("\nthe end\n"), done.stdout + done.stderr
    assert done.stdout.count("SERVING\n") >= 6
    assert "grpc_server_call_started_total" in done.stdout


def test_every_metric_is_explained():
    for instrument in (*CALL_INSTRUMENTS, *PRODUCT_INSTRUMENTS):
        suffix = "_total" if instrument.kind == "counter" else ""
        assert f"`{prometheus_name(instrument)}{suffix}`" in TEXT


def flags_of_clients():
    """The flags by which a command finds its server, spelled like settings."""
    parser = argparse.ArgumentParser()
    add_connection(parser)
    return {action.option_strings[0][2:].replace("-", "_") for action in parser._actions}


def test_every_setting_that_is_named_exists():
    known = all_settings()
    flags = {flag.replace("-", "_") for flag in re.findall(r"`--([a-z-]+)[^`]*`", TEXT)}
    keys = set(re.findall(r"^([a-z_]+) = ", TEXT, re.MULTILINE))
    assert flags | keys <= known.keys() | flags_of_clients() | {"role"}


def test_every_file_that_is_named_exists():
    root = DOCUMENT.parents[1]
    for name in re.findall(r"`((?:deploy|docs|tests)/[\w./@-]+)`", TEXT):
        assert (root / name).exists(), name
