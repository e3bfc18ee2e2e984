from __future__ import annotations

import json
import os
import sys
from contextlib import closing

import pytest

from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.cli import main
from flue_grpc.doctor import database
from flue_grpc.private_files import OwnerLock, announce
from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))

    def run(*arguments):
        code = main(["doctor", "--data-dir", str(tmp_path / "data"), *arguments])
        return code, capsys.readouterr().out

    return run


def test_nothing_is_wrong_on_a_fresh_machine(run, tmp_path):
    code, out = run()
    assert code == 0
    assert "BAD" not in out
    assert f"note data          {tmp_path}/data is not there yet\n" in out
    assert "→ `flue-grpc serve` makes it\n" in out
    assert list(tmp_path.iterdir()) == []


def test_a_problem_is_an_exit_code_and_has_advice(run, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data").chmod(0o777)
    code, out = run()
    assert code == 1
    assert f"BAD  data          others may write in {tmp_path}/data" in out
    assert f"→ let {tmp_path}/data be yours alone" in out


def test_findings_come_as_json_too(run):
    code, out = run("--json")
    findings = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert {"subject", "level", "text", "advice"} == set(findings[0])
    subjects = {finding["subject"] for finding in findings}
    assert {"version", "data", "index", "socket", "claude", "codex", "pi"} <= subjects


def test_a_hostile_file_name_cannot_move_the_cursor(run, tmp_path):
    _, out = run("--home", str(tmp_path / "a\x1b[2Jb"))
    assert "\x1b" not in out


def test_who_has_the_index_in_use_is_named_though_no_socket_is_there(run, tmp_path):
    settings = IndexSettings(home=str(tmp_path), directory=tmp_path / "data/agents", ranked=False)
    with AgentIndex.open(settings):
        _, out = run()
    free = run()[1]
    [line] = [line for line in out.splitlines() if " transcripts in " in line]
    assert ": 0 transcripts in 0 files, " in line
    assert line.endswith(f", in use by process {os.getpid()}")
    assert "end a process that has its files in use first" in out
    assert "in use by" not in free


def test_a_folder_that_cannot_be_entered_is_named(run, tmp_path, monkeypatch):
    folder = tmp_path / ".claude/projects/locked"
    folder.mkdir(parents=True)
    scandir = os.scandir

    def refuse(path):
        if str(path) == str(folder):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    code, out = run()
    assert code == 1
    root = folder.parent
    assert f"BAD  claude        {root}: what is in 1 of its folders cannot be read" in out
    assert f"see the owner and mode of them, such as {folder}" in out


def filled(data):
    """A Store of some hundred pages, closed."""
    with closing(Store.open(data / "store.db")) as store:
        store.create_session("s", "a title")
        for number in range(50):
            store.append_message("s", Draft("user", f"message {number} " + "x" * 20_000))


def store_line(out):
    [line] = [line for line in out.splitlines() if line[5:].startswith("store ")]
    return line


def overwrite(path):
    with path.open("r+b") as file:
        file.seek(4096 * 100)
        file.write(os.urandom(4096 * 40))


def test_a_sound_database_is_checked(run, tmp_path):
    filled(tmp_path / "data")
    before = sorted(path.name for path in (tmp_path / "data").iterdir())
    code, out = run()
    assert code == 0
    assert store_line(out).startswith("ok   store")
    assert store_line(out).endswith("; its pages are sound")
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == before


def test_overwritten_pages_are_a_problem_for_doctor_as_for_check(run, tmp_path):
    filled(tmp_path / "data")
    overwrite(tmp_path / "data" / "store.db")
    code, out = run()
    assert code == 1
    assert store_line(out).startswith("BAD  store")
    assert "; damaged: " in store_line(out)
    assert "→ run `flue-grpc check`, then restore a backup, or choose another data_dir" in out
    assert main(["check", "--data-dir", str(tmp_path / "data")]) == 1


def test_a_check_that_takes_too_long_says_that_it_was_not_made(run, tmp_path, monkeypatch):
    filled(tmp_path / "data")
    monkeypatch.setattr(database, "DOCTOR_CHECK_SECONDS", -1.0)
    monkeypatch.setattr(database, "_STEPS", 1)
    code, out = run()
    assert code == 0
    assert store_line(out).startswith("note store")
    assert store_line(out).endswith("; too large to be checked here")
    assert "→ `flue-grpc check` does\n" in out


def test_a_server_that_listens_elsewhere_is_named(run, tmp_path):
    lock = tmp_path / "data" / "lock"
    lock.parent.mkdir(mode=0o700)
    with OwnerLock(lock):
        announce(lock, ["unix:/run/elsewhere"])
        code, out = run()
    assert code == 0
    assert (
        f"ok   server        process {os.getpid()} has this data directory "
        "and listens on unix:/run/elsewhere\n"
    ) in out
    assert "→ commands find the server by its data directory; tell other clients unix:/run/e" in out
    assert "start one with" not in out


@pytest.mark.parametrize(
    ("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colours_are_for_terminals_that_want_them(run, monkeypatch, variables, coloured):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert ("\x1b[32m" in run()[1]) == coloured
