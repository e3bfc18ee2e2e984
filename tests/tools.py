"""Programs that tests call: one that is missing fails CI, and is a named skip elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def missing(what):
    """End the test: CI promises everything that tests call, other machines nothing."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}, and CI has to have it")
    pytest.skip(what)


def tool(name):
    """Find a program on the PATH."""
    return shutil.which(name) or missing(f"{name} is not installed")


def packaged(name):
    """Find a program that the development environment brings for some kinds of machine."""
    path = Path(sys.executable).with_name(name)
    return path if path.exists() else missing(f"{name} is not packaged for this machine")


def grpcurl():
    """Build grpcurl, unless that was done, and find it."""
    tool("go")
    built = subprocess.run([ROOT / "scripts/grpcurl"], check=True, capture_output=True, text=True)
    return Path(built.stdout.strip())
