"""Commands whose standard streams are closed, or cannot be written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flue_grpc.store.store import Store

FULL = Path("/dev/full")
COMMANDS = ["--help", "help", "show --help", "--version", "config", "completion bash", "check"]


@pytest.fixture
def run(tmp_path):
    """Run a command below a shell that redirects its streams."""
    Store.open(tmp_path / "data" / "store.db").close()

    def command(words, redirections):
        arguments = words.split()
        if words in {"config", "check", "memory add -"}:
            arguments += ["--data-dir", str(tmp_path / "data")]
        return subprocess.run(
            ["sh", "-c", f'exec "$@" {redirections}', "-", sys.executable, "-m", "flue_grpc",
             *arguments],
            capture_output=True, text=True, check=False, timeout=60, env={"HOME": str(tmp_path)},
        )  # fmt: skip

    return command


@pytest.mark.parametrize("words", COMMANDS)
def test_output_that_is_closed_is_told_in_words(run, words):
    ended = run(words, ">&-")
    assert (ended.returncode, ended.stderr) == (2, "flue-grpc: Bad file descriptor\n")


@pytest.mark.skipif(not FULL.exists(), reason="there is no disk that is always full")
@pytest.mark.parametrize("words", COMMANDS)
def test_output_that_cannot_be_written_is_told_in_words(run, words):
    ended = run(words, ">/dev/full")
    assert (ended.returncode, ended.stderr) == (2, "flue-grpc: No space left on device\n")
    assert run(words, ">/dev/full 2>/dev/full").returncode == 2


@pytest.mark.parametrize("words", COMMANDS)
def test_nothing_is_amiss_without_input_and_complaints(run, words):
    ended = run(words, "<&- 2>&-")
    assert ended.returncode == 0
    assert ended.stdout == run(words, "").stdout != ""


def test_no_file_of_ours_takes_the_place_of_a_closed_stream(run, tmp_path):
    database = tmp_path / "data" / "store.db"
    assert run("check", ">&- 2>&-").returncode == 2
    assert database.read_bytes().startswith(b"SQLite format 3\0")
    assert run("check", "").returncode == 0


def test_input_that_is_closed_is_empty(run):
    ended = run("memory add -", "<&-")
    assert ended.returncode == 2
    assert ended.stderr.startswith("flue-grpc: there is no text to remember")
