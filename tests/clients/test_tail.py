"""``tail`` goes on: after a server that stopped, and after a file that was rewritten."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from flue_grpc.cli import main

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def tailing(*arguments):
    process = subprocess.Popen(
        [sys.executable, "-m", "flue_grpc", "tail", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, bufsize=1,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def interrupted(process):
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


def test_it_waits_for_a_server_that_was_stopped_and_says_so_once(base, serving, pi_session):
    session = pi_session("live", "first")
    with serving() as server, tailing("live", "--server", f"unix:{base}/s") as tail:
        assert tail.stdout.readline().endswith("\tfirst\n")
        server.stop()
        assert tail.stderr.readline() == (
            "flue-grpc: the connection to the server is lost; trying again until Ctrl-C\n"
        )
        with serving():
            assert tail.stderr.readline() == "flue-grpc: the server is back\n"
            session.say("second")
            assert tail.stdout.readline().endswith("\tsecond\n")
            assert interrupted(tail) == (130, "")


def test_a_rewritten_transcript_goes_on_with_its_new_end(base, serving, pi_session):
    session = pi_session("live", "first " * 50, "second")
    with serving(), tailing("live", "-n", "1", "--server", f"unix:{base}/s") as tail:
        assert tail.stdout.readline().endswith("\tsecond\n")
        head = session.path.read_text().splitlines(keepends=True)[0]
        session.path.write_text(head)
        session.say("anew")
        assert tail.stderr.readline() == (
            "flue-grpc: the tool has rewritten this session; it goes on with the end of the new one\n"
        )
        assert tail.stdout.readline().endswith("\tanew\n")
        session.say("and on")
        assert tail.stdout.readline().endswith("\tand on\n")
        assert interrupted(tail) == (130, "")


@pytest.mark.parametrize(
    ("count", "words"), [("-1", "at least 0 is needed"), ("x", "'x' is no whole number")]
)
def test_a_number_that_cannot_be_is_refused(capsys, count, words):
    with pytest.raises(SystemExit) as ended:
        main(["tail", "live", "-n", count])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"argument -n: {words}\n")
