from __future__ import annotations

import json
import os

import pytest

from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.cli import main


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
    [line] = [line for line in out.splitlines() if " transcripts, " in line]
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
