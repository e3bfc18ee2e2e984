"""The checks of the other languages that no build makes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.tools import tool

ROOT = Path(__file__).resolve().parents[2]
GO_MODULES = ("examples/go", "tests/conformance/go")
PACKAGES = ("generated/typescript", "examples/typescript", "tests/conformance/typescript")


@pytest.mark.parametrize("module", GO_MODULES)
def test_go_is_formatted_and_vetted(module):
    tool("go")
    for command in (["gofmt", "-l", "."], ["go", "vet", "./..."], ["go", "mod", "tidy", "-diff"]):
        done = subprocess.run(
            command, cwd=ROOT / module, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.parametrize("package", PACKAGES)
def test_lock_files_name_no_registry(package):
    lock = json.loads((ROOT / package / "package-lock.json").read_text("utf-8"))
    resolved = {entry["resolved"] for entry in lock["packages"].values() if "resolved" in entry}
    assert all(place.startswith(("file:", "..")) for place in resolved)
    assert lock["lockfileVersion"] == 3


@pytest.mark.parametrize("package", PACKAGES)
def test_typescript_is_strict(package):
    options = json.loads((ROOT / package / "tsconfig.json").read_text("utf-8"))["compilerOptions"]
    assert options["strict"] is True
    assert options["exactOptionalPropertyTypes"] is True


def test_the_same_versions_everywhere():
    manifests = [json.loads((ROOT / p / "package.json").read_text("utf-8")) for p in PACKAGES[1:]]
    assert manifests[0]["dependencies"] == {
        **manifests[1]["dependencies"],
        "flue-grpc": "file:../../generated/typescript",
    }
    assert manifests[0]["devDependencies"] == manifests[1]["devDependencies"]
    grpc = {
        re.search(r"google\.golang\.org/grpc (v\S+)", (ROOT / m / "go.mod").read_text("utf-8"))[1]
        for m in (*GO_MODULES, "generated/go")
    }
    assert len(grpc) == 1
