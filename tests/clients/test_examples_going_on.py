"""The examples beside a server that is started again, and before a reader that has enough."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from flue_grpc.client import connect
from tests.clients.test_examples import ENVIRONMENT, LANGUAGES, programs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def address(base):
    return f"unix:{base}/s"


def await_session(address, name):
    with connect(address) as client:
        while name not in [summary.id for summary in client.agentindex.snapshot()]:
            pass


@pytest.mark.parametrize("language", LANGUAGES)
def test_following_outlives_a_server_that_stops_in_order(language, serving, address, pi_session):
    command = [*programs(language)["follow"], "pi", "followed"]
    session = pi_session("followed", "first")
    with serving() as server:
        await_session(address, "followed")
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**ENVIRONMENT, "FLUE_ADDRESS": address},
        )  # fmt: skip
        try:
            assert process.stdout.readline().endswith('\t"first"\n')
            server.stop()
            session.say("meanwhile")
            with serving():
                assert process.stdout.readline().endswith('\t"meanwhile"\n')
                session.say("afterwards")
                assert process.stdout.readline().endswith('\t"afterwards"\n')
        finally:
            process.kill()
            process.communicate()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_reader_that_has_enough_is_no_error(language, serving, address, pi_session):
    pi_session("long", *(f"message number {n}" for n in range(5000)))
    follow = shlex.join([*programs(language)["follow"], "pi", "long"])
    listed = shlex.join(programs(language)["list"])
    with serving():
        await_session(address, "long")
        for command, shown in ((follow, "head -n 1"), (listed, "true")):
            done = subprocess.run(
                ["bash", "-c", f"{command} | {shown}"], env={**ENVIRONMENT, "FLUE_ADDRESS": address},
                capture_output=True, text=True, check=False, timeout=60,
            )  # fmt: skip
            assert done.stderr == ""
        assert len(done.stdout.splitlines()) == 0
