"""What a person sees while work takes long, held in the middle to be looked at."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue_grpc.agentindex import substring
from flue_grpc.client import connect
from flue_grpc.commands import connection, export
from tests.clients.terminal import ROOT, Terminal
from tests.waiting import PATIENCE


@contextmanager
def watched():
    """Put standard error on a terminal; call what is given to wait until texts were drawn."""
    controller, slave = os.openpty()
    drawn = ""

    def wait_for(*texts):
        nonlocal drawn
        while not all(text in drawn for text in texts):
            drawn += os.read(controller, 65_536).decode()

    with os.fdopen(slave, "w") as stderr, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm-256color")
        patch.setattr(sys, "stderr", stderr)
        yield wait_for
    os.close(controller)


def test_a_bar_tells_how_far_transcripts_are_read():
    """It is drawn while the sweep goes on, and not only at its end."""
    index = SimpleNamespace(progress=SimpleNamespace(bytes=0, of_bytes=200))
    looks = iter([0, 50, 150])

    def still_runs(asked):
        done = next(looks, None)
        if asked.progress.bytes:
            drawn("reading transcripts", f"{asked.progress.bytes // 2}%")
        asked.progress.bytes = done
        return done is not None

    with watched() as drawn:
        connection._wait_while(still_runs, index)
    assert next(looks, None) is None


class Transcript:
    """Two pages, of which the second is not asked for before the first is seen."""

    def __init__(self, drawn):
        self._drawn = drawn

    def read_transcript(self, tool, name):
        return self

    def responses(self):
        for end in (40, 100):
            page = pb.Page(messages=[pb.Message(text=str(end))], next=end, file_size=100)
            yield pb.ReadTranscriptResponse(page=page)
            self._drawn("exporting", f"{end}%")


def test_a_bar_tells_how_far_a_transcript_is_exported():
    with watched() as drawn:
        client = SimpleNamespace(agentindex=Transcript(drawn))
        messages = export._messages(client, pb.Summary(tool="pi", id="x"))
        assert [message.text for message in messages] == ["40", "100"]


def test_an_export_to_a_terminal_shows_the_bar_and_takes_it_away(flags, base):
    arguments = ["export", "--transcript", "5f0c", "-o", str(base / "page.html")]
    code, output = Terminal([*arguments, *flags]).finish()
    assert code == 0
    assert "exporting" in output
    assert output.rindex("exporting") < output.rindex("\x1b[2K")


def test_no_bar_is_drawn_where_nobody_looks(flue, base):
    code, _, complaint = flue("export", "--transcript", "5f0c", "-o", str(base / "page.html"))
    assert (code, complaint) == (0, "")


@pytest.fixture
def held(monkeypatch):
    """A search stops before its second transcript until this is set."""
    opened, gate = [], threading.Event()
    open_transcript = substring.open_transcript

    def open_when_let(path, root):
        opened.append(path)
        if len(opened) == 2:
            assert gate.wait(PATIENCE)
        return open_transcript(path, root)

    monkeypatch.setattr(substring, "open_transcript", open_when_let)
    yield gate
    gate.set()


@pytest.fixture
def searching(base, home, serving):
    """The variables by which a command finds a server that has read every transcript."""
    address = f"unix:{base}/flue-grpc/flue.sock"
    with serving(address):
        with connect(address) as client:
            while len(list(client.agentindex.snapshot())) < 3:
                pass
        yield {"XDG_RUNTIME_DIR": str(base)}


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["fields", "json"])
def test_hits_come_through_a_pipe_before_the_search_has_ended(searching, held, form):
    process = subprocess.Popen(
        [sys.executable, "-m", "flue_grpc", "search", "timeout", *form],
        env={**os.environ, **searching, "PYTHONUNBUFFERED": ""},
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    first = process.stdout.readline()
    assert "codex" in first
    assert not held.is_set()
    held.set()
    rest, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert len(rest.splitlines()) == 3


def test_hits_come_to_a_terminal_before_the_search_has_ended(searching, held):
    terminal = Terminal(["search", "timeout"], **searching)
    terminal.read_until("Raise the gateway")
    assert "src/pay.py" not in terminal.output
    held.set()
    code, output = terminal.finish()
    assert (code, "src/pay.py" in output) == (0, True)
