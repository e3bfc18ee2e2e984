from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue_grpc.render.shell import quote, resume_command

# dash and busybox know nothing that POSIX does not; the others know more.
SHELLS = [
    command
    for command in (
        ["dash", "-c"],
        ["bash", "-c"],
        ["bash", "--posix", "-c"],
        ["zsh", "-f", "-c"],
        ["busybox", "sh", "-c"],
        ["ksh", "-c"],
    )
    if shutil.which(command[0])
]
WORDS = [
    "plain",
    "",
    "two words",
    "it's",
    "$(rm -rf ~)",
    "`id`",
    "a;b|c&d>e",
    "-rf",
    "-n\x01",
    "tab\there",
    "line\nbreak",
    "\n\n two lines before",
    "end\n'; exit 9; '",
    "\x1b]0;owned\x07",
    "back\\slash'\x01",
    "\x01'; exit 9; '",
    "\x01'; exit 9; #",
    '\x01"; exit 9; "',
    "\x01$(exit 9)`exit 9`$HOME %s %d%% \\047 \\n !! !x",
    "\x7f\x80\x9b\u2028",
    "数据库 é",
    "数据库 é\x01数",
    "no\u00a0break 👨\u200d👩 \u2066",
    "\u202eevil",
    "not \udcff\udc80 text",
]


def read_back(shell, words):
    line = "".join(f"printf '%s\\0' {quote(word)};" for word in words)
    assert line.isprintable()
    done = subprocess.run(
        [*shell, line], capture_output=True, check=True, env={"PATH": os.environ["PATH"]}
    )
    assert done.stderr == b""
    return done.stdout.split(b"\0")[:-1]


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_every_shell_reads_back_the_words(shell):
    assert read_back(shell, WORDS) == [os.fsencode(word) for word in WORDS]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.text(st.sampled_from("ab \n\t'\"`$()\\;&|<>!%-~*?#\x01\x1b\x7f\u202eé\udcff0")).filter(
            lambda word: not word.endswith("\n")
        ),
        min_size=1,
    )
)
def test_dash_reads_back_any_words(words):
    assert read_back(SHELLS[0], words) == [os.fsencode(word) for word in words]


@pytest.mark.parametrize("word", ["a\0b", "a\n", "\n", "\x01\n\n"])
def test_a_word_that_no_line_can_make_is_refused(word):
    with pytest.raises(ValueError, match="no shell takes such a word"):
        quote(word)


def test_the_command_goes_to_the_directory_first():
    resume = pb.Resume(command="claude", args=["--resume", "a b"], dir="/home/dev/my shop")
    assert resume_command(resume) == "cd -- '/home/dev/my shop' && claude --resume 'a b'"
