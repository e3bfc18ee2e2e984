from __future__ import annotations

import os

import pytest

from flue_grpc import config
from flue_grpc.doctor import tools
from flue_grpc.doctor.findings import Finding, Level

NAME = "11111111-2222-4333-8444-555555555555.jsonl"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / ".claude" / "projects" / "-srv-work"
    folder.mkdir(parents=True)
    (folder / NAME).write_text("x" * 2048)
    return folder


def examine(tmp_path, env=None):
    configuration = config.combine({"home": str(tmp_path)} if env is None else {}, env or {})
    return list(tools.transcripts(tools.roots_of(configuration, env or {})))


def test_transcripts_are_counted_per_root(tmp_path, folder):
    found = examine(tmp_path)
    assert found[0] == Finding("claude", Level.OK, f"{tmp_path}/.claude/projects: 1 file, 2 KiB")
    assert {finding.level for finding in found[1:]} == {Level.NOTE}
    assert {finding.subject for finding in found} == {"claude", "codex", "pi"}


def test_the_tools_own_variables_count_unless_a_home_was_named(tmp_path):
    env = {"HOME": str(tmp_path), "CODEX_HOME": str(tmp_path / "elsewhere")}
    paths = " ".join(finding.text for finding in examine(tmp_path, env))
    assert f"{tmp_path}/elsewhere/sessions" in paths
    assert "elsewhere" not in " ".join(finding.text for finding in examine(tmp_path))


def test_unreadable_transcripts_and_roots_are_problems(tmp_path, folder, monkeypatch):
    access = os.access
    monkeypatch.setattr(os, "access", lambda p, m: not str(p).endswith(NAME) and access(p, m))
    found = examine(tmp_path)[0]
    assert found.level is Level.PROBLEM
    assert found.text.endswith(": 1 of 1 file cannot be read")
    assert found.advice.endswith(str(folder / NAME))
    monkeypatch.setattr(os, "access", lambda _p, _m: False)
    found = examine(tmp_path)[0]
    assert (found.level, found.advice) == (Level.PROBLEM, "run as the user whose home it is")
