"""The bar of an import: on a terminal, as far as the file is read."""

from __future__ import annotations

import os
import select
import sys
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from flue_grpc.commands import store_commands
from flue_grpc.store.exporting import WRITERS, export_sessions
from flue_grpc.store.importing import Importer
from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft

PATIENCE = 20.0
MESSAGES = 3


@pytest.fixture
def exported(tmp_path):
    """A session of three messages, four lines of nearly the same length."""
    store = Store.open(tmp_path / "source" / "store.db")
    store.create_session("s", "x" * 10_000)
    store.append_messages("s", [Draft("user", "x" * 10_000)] * MESSAGES)
    readers = store._database.readers
    file = tmp_path / "s.jsonl"
    file.write_bytes(b"".join(export_sessions(readers, WRITERS["jsonl"], "")))
    store.close()
    return file


@contextmanager
def screen(monkeypatch):
    """Standard error on a terminal; yields what waits until a text was drawn there."""
    controller, slave = os.openpty()
    drawn = ""

    def wait_for(text):
        nonlocal drawn
        end = time.monotonic() + PATIENCE
        while text not in drawn:
            ready, _, _ = select.select([controller], [], [], PATIENCE)
            is_late = not ready or time.monotonic() > end
            assert not is_late, f"{text!r} is not in {drawn[-500:]!r}"
            drawn += os.read(controller, 65_536).decode()
        return drawn

    with os.fdopen(slave, "w") as stderr, monkeypatch.context() as patch:
        patch.setenv("TERM", "xterm-256color")
        patch.setattr(sys, "stderr", stderr)
        yield wait_for
    os.close(controller)


def run_import(tmp_path, file):
    settings = SimpleNamespace(data_dir=tmp_path / "target", durability="full")
    return store_commands.run(SimpleNamespace(operation="import", file=str(file)), settings)


def test_a_bar_tells_how_far_an_import_is(exported, tmp_path, monkeypatch):
    """No line is imported before the screen shows how much of the file is read."""
    size, run = exported.stat().st_size, Importer.run
    shown = []

    def watched(lines, wait_for):
        done = 0
        for line in lines:
            done += len(line)
            shown.append(round(done / size * 100))
            wait_for(f"{shown[-1]}%")
            yield line

    with screen(monkeypatch) as wait_for:
        monkeypatch.setattr(
            Importer, "run", lambda importer, lines: run(importer, watched(lines, wait_for))
        )
        assert run_import(tmp_path, exported) == 0
        drawn = wait_for("imported 1 session with 3 messages, refused 0")
    assert shown == [25, 50, 75, 100]
    assert drawn.index("importing") < drawn.index("25%")
    assert drawn.rindex("importing") < drawn.rindex("\x1b[2K") < drawn.index("imported 1")


def test_no_bar_of_an_import_is_drawn_where_nobody_looks(exported, tmp_path, capfd):
    assert run_import(tmp_path, exported) == 0
    out, complaint = capfd.readouterr()
    assert (out, complaint.count("\n")) == ("", 1)
    assert "importing" not in complaint
