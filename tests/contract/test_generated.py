"""The generated code is what the protos make, and a difference is noticed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("buf.yaml", "proto", "scripts", "generated/python", "generated/flue.binpb")


@pytest.fixture
def copy(tmp_path):
    for name in SOURCES:
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    return tmp_path


def check(root):
    # A PATH without Go and npm, and no CI, leaves the part that runs everywhere.
    tools = root / "tools"
    tools.mkdir()
    for name in ("bash", "cat", "diff", "dirname", "find", "mkdir", "mktemp"):
        (tools / name).symlink_to(shutil.which(name))
    for name in ("rm", "sort", "touch", "xargs"):
        (tools / name).symlink_to(shutil.which(name))
    environment = {k: v for k, v in os.environ.items() if k not in {"CI", "PATH"}}
    return subprocess.run(
        ["bash", root / "scripts/check-generated"],
        env={**environment, "PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_current_code_passes_and_missing_tools_are_named(copy):
    result = check(copy)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "check-generated: python is up to date",
        "check-generated: descriptors is up to date",
        "check-generated: skipped Go: go is not installed",
        "check-generated: skipped TypeScript: npm is not installed",
    ]


def test_a_stub_edited_by_hand_fails(copy):
    with (copy / "generated/python/flue/store/v1/store_pb2.pyi").open("a") as stub:
        stub.write("# edited\n")
    result = check(copy)
    assert result.returncode == 1
    assert "generated/python/flue is out of date, run make generate" in result.stderr


def test_a_proto_edited_without_generating_fails(copy):
    proto = copy / "proto/flue/store/v1/store.proto"
    proto.write_text(proto.read_text().replace("bool pinned = 4;", "bool pinned = 7;"))
    result = check(copy)
    assert result.returncode == 1
    assert "out of date" in result.stderr
