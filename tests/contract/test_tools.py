"""A program that is missing is a failure in CI and a named skip elsewhere."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests import tools

RUN = Path(__file__).resolve().parents[2] / ".ci" / "run"


@pytest.mark.parametrize(
    ("ci", "ending", "more"),
    [("", pytest.skip.Exception, ""), ("true", pytest.fail.Exception, ", and CI has to have it")],
    ids=["here", "in CI"],
)
def test_what_is_missing_is_named(monkeypatch, tmp_path, ci, ending, more):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CI", ci)
    for find, name, why in (
        (tools.tool, "sh", "is not installed"),
        (tools.packaged, "no-such-tool", "is not packaged for this machine"),
    ):
        with pytest.raises(ending) as caught:
            find(name)
        assert caught.value.msg == f"{name} {why}{more}"
    with pytest.raises(ending, match="go is not installed"):
        tools.grpcurl()


def test_what_is_there_is_found():
    assert tools.tool("sh") == shutil.which("sh")
    assert tools.packaged("python").name == "python"


def test_ci_installs_what_tests_call():
    """Whatever a bare machine with Python, Go and Node may lack."""
    brought = set(re.findall(r"\b\w+:([\w-]+)", RUN.read_text()))
    assert brought == {"chromium", "openssl", "sqlite3", "systemd-analyze"}
