from __future__ import annotations

import subprocess

import pytest

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue_grpc.render.shell import quote, resume_command


@pytest.mark.parametrize(
    "word",
    [
        "plain",
        "",
        "two words",
        "it's",
        "$(rm -rf ~)",
        "`id`",
        "a;b|c&d>e",
        "-rf",
        "tab\there",
        "line\nbreak",
        "\x1b]0;owned\x07",
        "back\\slash'\x01",
        "数据库 é",
        "\u202eevil",
    ],
)
def test_a_shell_reads_back_the_word(word):
    quoted = quote(word)
    assert quoted.isprintable()
    done = subprocess.run(
        ["bash", "-c", f"printf %s {quoted}"], capture_output=True, check=True, text=True
    )
    assert done.stdout == word


def test_the_command_goes_to_the_directory_first():
    resume = pb.Resume(command="claude", args=["--resume", "a b"], dir="/home/dev/my shop")
    assert resume_command(resume) == "cd -- '/home/dev/my shop' && claude --resume 'a b'"
