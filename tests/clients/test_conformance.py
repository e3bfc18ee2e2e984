"""Every client runs every scenario against a real server; see tests/conformance."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "tests" / "conformance"
NAMES = [
    scenario["name"]
    for file in sorted(SCENARIOS.glob("*.json"))
    for scenario in json.loads(file.read_text("utf-8"))
]

# A command that has ended is all there is to see of a tool's call, and many of them take long.
ENDED = "is seen only once it has ended"
NOT_BY_TOOLS = {
    "cancel", "message-resume", "message-follow", "message-follow-limit", "message-follow-deleted", "watch",
    "transcript-resume", "transcript-follow", "transcript-replaced", "read-message",
}  # fmt: skip
LEFT_OUT = {
    "python": set(),
    "go": set(),
    "connect": set(),
    "grpc-js": set(),
    "grpcurl": NOT_BY_TOOLS,
    "buf-curl": NOT_BY_TOOLS | {"deadline"},
}
TOOLS_LACK = ("has no deadline to set", "starts a process for each of over 20 calls")
ONLY_TCP = {"credentials"}


def test_names_are_unique():
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize(
    ("ci", "outcome", "code"), [("", "missing", 0), ("true", "failed", 1)], ids=["here", "in CI"]
)
def test_a_missing_toolchain_is_named_and_fails_only_in_ci(tmp_path, ci, outcome, code):
    done = subprocess.run(
        [sys.executable, SCENARIOS / "driver", "--client", "go", "--transport", "tcp", "--json"],
        capture_output=True, text=True, check=False, cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path), "CI": ci},
    )  # fmt: skip
    [result] = map(json.loads, done.stdout.splitlines())
    assert (result["outcome"], result["detail"]) == (outcome, "go is not installed")
    assert done.returncode == code


def test_the_table_tells_why_a_cell_is_empty():
    command = [sys.executable, SCENARIOS / "driver", "--client", "buf-curl", "--client", "python"]
    files = ["--transport", "unix", "--file", SCENARIOS / "security.json"]
    files += ["--file", SCENARIOS / "store_messages.json"]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"^(?:cancel|deadline|credentials) .*$", done.stdout, re.MULTILINE) == [
        f"{name:<23}{buf:>12} {python:>12}"
        for name, buf, python in [
            ("credentials", "-", "-"), ("deadline", "-", "ok"), ("cancel", "-", "ok"),
        ]
    ]  # fmt: skip
    assert re.findall("^-: .*$", done.stdout, re.MULTILINE) == [
        "-: buf-curl, python was not asked over the transport that this is about",
        "-: buf-curl starts a process for each of over 20 calls",
        f"-: buf-curl {ENDED}",
        "-: buf-curl has no deadline to set",
    ]


@pytest.mark.parametrize("transport", ["unix", "tcp"])
@pytest.mark.parametrize("client", LEFT_OUT)
def test_client(client, transport):
    done = subprocess.run(
        [sys.executable, SCENARIOS / "driver", "--client", client, "--transport", transport,
         "--json"],
        capture_output=True, text=True, check=False, timeout=600, cwd=ROOT,
    )  # fmt: skip
    results = [json.loads(line) for line in done.stdout.splitlines()]
    for result in results:
        if result["outcome"] == "missing":
            pytest.skip(result["detail"])
    details = {r["scenario"]: r["detail"] for r in results if r["outcome"] == "failed"}
    assert details == {}, done.stderr
    reasons = {r["scenario"]: r["detail"] for r in results if r["outcome"] == "not applicable"}
    assert {reasons.get(name) for name in LEFT_OUT[client]} <= {ENDED, *TOOLS_LACK}
    left_out = LEFT_OUT[client] | (ONLY_TCP if transport == "unix" else set())
    assert {r["scenario"]: r["outcome"] for r in results} == {
        name: "not applicable" if name in left_out else "passed" for name in NAMES
    }, done.stderr
    assert done.returncode == 0
