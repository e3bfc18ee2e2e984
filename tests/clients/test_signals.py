"""Commands that are told to end while they serve themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from flue_grpc.client import client as clients
from flue_grpc.client import connect
from tests.clients.terminal import ROOT, Terminal
from tests.waiting import PATIENCE

SIGNALS = [
    number
    for number in (signal.SIGTERM, signal.SIGHUP)
    if signal.getsignal(number) is not signal.SIG_IGN
]


@pytest.fixture
def temporary(base):
    directory = base / "tmp"
    directory.mkdir()
    return directory


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_a_command_that_leaves_nothing_behind(flags, temporary, number):
    with subprocess.Popen(
        [sys.executable, "-m", "flue_grpc", "tail", "5f0c", *flags],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:  # fmt: skip
        assert process.stdout.readline().startswith("0.0\tuser")
        assert [path.name[:10] for path in temporary.iterdir()] == ["flue-grpc-"]
        process.send_signal(number)
        assert process.wait(PATIENCE) == 128 + number
        assert process.stderr.read() == ""
    assert list(temporary.iterdir()) == []


def test_what_is_ignored_stays_ignored(flags, temporary):
    with subprocess.Popen(
        ["sh", "-c", 'trap "" HUP; exec "$@"', "-", sys.executable, "-m", "flue_grpc", "tail",
         "5f0c", *flags],
        stdout=subprocess.PIPE, cwd=ROOT, text=True, env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:  # fmt: skip
        assert process.stdout.readline().startswith("0.0\tuser")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 128 + signal.SIGTERM
    assert list(temporary.iterdir()) == []


def test_a_signal_ends_the_pager_too(flags, temporary):
    terminal = Terminal(
        ["show", "5f0c", *flags],
        stderr=subprocess.DEVNULL,
        PAGER="sh -c 'cat; exec tail -f /dev/null'",
        TMPDIR=str(temporary),
    )
    terminal.read_until("after 1 s.")
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.finish()[0] == 128 + signal.SIGTERM
    assert list(temporary.iterdir()) == []


def test_a_client_does_not_wait_for_a_call_that_never_ends(monkeypatch):
    """gRPC does, for one that a signal interrupted before anything could end it."""
    monkeypatch.setattr(clients, "_CLOSE_SECONDS", 0.05)
    never = threading.Event()
    client = connect("unix:/nowhere")
    monkeypatch.setattr(client._channel, "close", never.wait)
    closing = threading.Thread(target=client.close, daemon=True)
    closing.start()
    closing.join(PATIENCE)
    assert not closing.is_alive()
    never.set()
