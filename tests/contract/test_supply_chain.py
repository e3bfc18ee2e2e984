"""What is depended on: locked for development, bounded for users, licensed, auditable."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = [Requirement(line) for line in (ROOT / "requirements-dev.lock").read_text().splitlines()]
EXTRAS = PROJECT["project"]["optional-dependencies"]
FOR_USERS = [
    Requirement(text)
    for texts in (PROJECT["project"]["dependencies"], *EXTRAS.values())
    for text in texts
]
FOR_DEVELOPERS = [Requirement(text) for text in PROJECT["dependency-groups"]["dev"]]
CALENDAR_VERSIONS = {"apsw", "tzdata"}


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def operators(requirement):
    return {specifier.operator for specifier in requirement.specifier}


@pytest.mark.parametrize("requirement", LOCK, ids=lambda requirement: requirement.name)
def test_every_locked_version_is_exact(requirement):
    assert operators(requirement) == {"=="}
    assert requirement.url is None


@pytest.mark.parametrize("requirement", FOR_USERS, ids=lambda requirement: requirement.name)
def test_users_get_a_range_and_the_lock_lies_in_it(requirement):
    bounds = {">="} if requirement.name in CALENDAR_VERSIONS else {">=", "<"}
    assert operators(requirement) == bounds
    (locked,) = (lock for lock in LOCK if canonical(lock.name) == canonical(requirement.name))
    (version,) = locked.specifier
    assert requirement.specifier.contains(version.version)


def test_everything_that_development_needs_is_locked():
    locked = {canonical(requirement.name) for requirement in LOCK}
    assert {canonical(r.name) for r in FOR_DEVELOPERS} <= locked


def test_the_list_of_licences_is_up_to_date():
    script = [sys.executable, ROOT / "scripts" / "licences", "--check"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_list_of_licences_is_compared(tmp_path):
    """The check fails on a list that differs: a copy of the script looks at another one."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "docs").mkdir()
    script = tmp_path / "scripts" / "licences"
    script.write_text((ROOT / "scripts" / "licences").read_text())
    text = (ROOT / "docs" / "licences.md").read_text()
    (tmp_path / "docs" / "licences.md").write_text(text.replace("| MIT |", "| GPL |"))
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, check=False)
    assert done.returncode == 1


def test_the_audit_covers_the_whole_lock():
    done = subprocess.run(
        [ROOT / "scripts" / "audit", "--dry-run"], capture_output=True, text=True, check=True
    )
    applicable = [r for r in LOCK if r.marker is None or r.marker.evaluate()]
    assert f"would have audited {len(applicable)} packages" in done.stderr


FAULT = {
    "id": "PYSEC-0000-1",
    "summary": "a fault",
    "aliases": [],
    "affected": [{"package": {"name": LOCK[0].name, "ecosystem": "PyPI"}, "ranges": []}],
}


@pytest.fixture
def advisories():
    """A database of advisories on this machine, which answers with ``answer``."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200 if server.answer is not None else 500)
            self.end_headers()
            self.wfile.write(json.dumps(server.answer).encode())

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def audit(directory, port):
    """Run the script on a lock of one line, asking an address of this machine."""
    (directory / "scripts").mkdir()
    script = Path(shutil.copy(ROOT / "scripts" / "audit", directory / "scripts"))
    (directory / "requirements-dev.lock").write_text(f"{LOCK[0]}\n")
    (directory / ".venv").symlink_to(ROOT / ".venv")
    place = ["--vulnerability-service", "osv", "--osv-url", f"http://127.0.0.1:{port}/"]
    return subprocess.run(
        [script, *place, "--cache-dir", directory / "cache"],
        env={**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        ({}, 0, "No known vulnerabilities found"),
        ({"vulns": [FAULT]}, 1, "PYSEC-0000-1"),
        (None, 1, ""),
    ],
    ids=["nothing known", "a fault", "no answer"],
)
def test_the_audit_fails_on_a_fault_and_without_an_answer(tmp_path, advisories, answer, code, told):
    advisories.answer = answer
    done = audit(tmp_path, advisories.server_port)
    assert done.returncode == code, done.stderr
    assert told in done.stdout + done.stderr


def test_the_audit_fails_when_there_is_nobody_to_ask(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert audit(tmp_path, port).returncode == 1
