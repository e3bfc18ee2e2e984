"""The lines for a terminal in docs/clients.md, as pasted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from flue_grpc.config import load
from flue_grpc.server import Server
from tests.wire.conftest import wait_until

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "clients.md").read_text()
PLACE, CALLS = re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def bash(script, environment):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", script], env={"PATH": path, **environment},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    ("variables", "socket"),
    [
        ({}, "/home/dev/.local/share/flue-grpc/flue.sock"),
        ({"XDG_DATA_HOME": "/data"}, "/data/flue-grpc/flue.sock"),
        ({"XDG_RUNTIME_DIR": "", "XDG_DATA_HOME": ""}, "/home/dev/.local/share/flue-grpc/flue.sock"),
        ({"XDG_RUNTIME_DIR": "/run/user/7", "XDG_DATA_HOME": "/data"}, "/run/user/7/flue-grpc/flue.sock"),
    ],
    ids=["home", "data", "empty", "runtime"],
)  # fmt: skip
def test_the_socket_is_where_a_server_puts_it(variables, socket):
    environment = {"HOME": "/home/dev", **variables}
    assert bash(f'{PLACE}printf %s "$SOCKET"', environment) == socket
    assert load({}, environment).settings.listen == (f"unix:{socket}",)


@pytest.fixture
def home():
    with tempfile.TemporaryDirectory(prefix="c") as name:
        server = Server(load({"home": str(ROOT / "examples" / "home")}, {"HOME": name}))
        server.start()
        wait_until(lambda: not server.services.index.building)
        yield name
        server.stop()


def test_buf_lists_the_sessions_of_an_own_server(home):
    _, calls = CALLS.split("buf curl", 1)
    shown = bash(f"{PLACE}buf curl{calls}", {"HOME": home})
    listed = [summary["tool"] for summary in json.loads(shown)["summaries"]]
    assert listed == ["codex", "claude", "pi"]
