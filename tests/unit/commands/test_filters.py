from __future__ import annotations

import argparse

import pytest

from flue_grpc.agentindex.adapters import registry
from flue_grpc.commands.filters import add_filters, directory, when


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


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("/home/dev/shop/", "/home/dev/shop"),
        ("/home/dev/shop/../cart", "/home/dev/cart"),
        ("//home//dev/./shop", "/home/dev/shop"),
        ("/", "/"),
        ("", ""),
        (".", "{here}"),
        ("..", "{here}/.."),
        ("sub/", "{here}/sub"),
        ("{here}/link/", "{here}/link"),
        ("link", "{here}/sub"),
    ],
)
def test_a_directory_is_written_as_sessions_record_it(tmp_path, monkeypatch, text, meant):
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("sub")
    monkeypatch.chdir(tmp_path)
    wanted = meant.format(here=tmp_path).replace(f"{tmp_path}/..", str(tmp_path.parent))
    assert directory(text.format(here=tmp_path)) == wanted


@pytest.mark.parametrize("text", ["999999w", "yesterdayish", "2026-13-01"])
def test_what_is_no_time_is_told_in_words(text):
    with pytest.raises(argparse.ArgumentTypeError, match=f"'{text}' is no time such as"):
        when(text)
