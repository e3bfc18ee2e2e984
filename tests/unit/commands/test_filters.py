from __future__ import annotations

import argparse

import pytest

from flue_grpc.agentindex.adapters import registry
from flue_grpc.commands.filters import add_filters


class Fourth:
    tool = "fourth"


def test_the_tools_of_a_filter_are_those_of_the_registry(monkeypatch, capsys):
    monkeypatch.setattr(registry, "ADAPTERS", (*registry.ADAPTERS, Fourth()))
    parser = argparse.ArgumentParser()
    add_filters(parser)
    assert parser.parse_args(["--tool", "fourth", "--tool", "pi"]).tool == ["fourth", "pi"]
    with pytest.raises(SystemExit):
        parser.parse_args(["--tool", "fifth"])
    complaint = capsys.readouterr().err.replace("'", "")
    assert "invalid choice: fifth (choose from claude, codex, pi, fourth)" in complaint
