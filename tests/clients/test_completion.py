"""The completions of each shell, asked as a person asks for them by pressing Tab."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue_grpc.client import connect
from flue_grpc.commands import completion

CODEX = "019f1f1f-0000-7000-8000-00000000000a"
CLAUDE = "5f0c2d9e-0000-4000-8000-000000000001"
PROGRAM = Path(sys.executable).with_name("flue-grpc")


def shell(name):
    """Find a shell; CI promises bash alone."""
    return shutil.which(name) or pytest.skip(f"{name} is not installed")


@pytest.fixture
def environment(base):
    """Where a server is looked for, and the program, when a person types."""
    path = f"{PROGRAM.parent}:{os.environ['PATH']}"
    return {**os.environ, "XDG_RUNTIME_DIR": str(base), "PATH": path}


@pytest.fixture
def server(base, home, serving):
    """A server on its default socket that has read every transcript."""
    path = base / "flue-grpc" / "flue.sock"
    with serving(f"unix:{path}"), connect(f"unix:{path}") as client:
        while len(list(client.agentindex.snapshot())) < 3:
            pass
        for name in ("ses_1", "ses_2"):
            client.store.create_session(name, "a title")
        yield client


def by_bash(line, environment):
    """Complete the last word of a line, as readline asks bash to."""
    words = line.split(" ")
    script = (
        "source <(flue-grpc completion bash)\n"
        f"COMP_WORDS=({shlex.join(words)}) COMP_CWORD={len(words) - 1}\n"
        "$(complete -p flue-grpc | grep -o '_[a-z_]*' | head -n 1)\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    return answer(["bash", "-uc", script], environment)


def by_fish(line, environment):
    script = f"flue-grpc completion fish | source; complete -C {shlex.quote(line)}"
    lines = answer([shell("fish"), "--no-config", "-c", script], environment)
    return [line.split("\t")[0] for line in lines]


def answer(command, environment):
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


LINES = [
    ("flue-grpc se", ["search", "serve", "sessions"]),
    ("flue-grpc search --js", ["--json"]),
    ("flue-grpc search --tool c", ["claude", "codex"]),
    ("flue-grpc memory l", ["list"]),
    ("flue-grpc completion f", ["fish"]),
    ("flue-grpc show 019f", [CODEX]),
    ("flue-grpc export --transcript 5f0c", [CLAUDE]),
    ("flue-grpc export --session s", ["ses_1", "ses_2"]),
    ("flue-grpc export --se", ["--server", "--session"]),
    ("flue-grpc export 5f0c", []),
    ("flue-grpc token list --page", []),
    ("flue-grpc config --page-m", ["--page-max", "--page-message-text-bytes"]),
    ("flue-grpc sessions 019f", []),
]


@pytest.mark.parametrize(("line", "words"), LINES)
@pytest.mark.parametrize("complete", [by_bash, by_fish], ids=["bash", "fish"])
def test_a_command_a_flag_a_choice_and_an_id_are_completed(
    server, environment, complete, line, words
):
    assert sorted(word for word in complete(line, environment) if word) == words


@pytest.mark.parametrize("complete", [by_bash, by_fish], ids=["bash", "fish"])
def test_without_a_server_there_are_no_ids_and_no_complaint(base, environment, complete):
    assert CODEX not in complete("flue-grpc show 0", environment)
    assert [word for word in complete("flue-grpc show --js", environment) if word] == ["--json"]


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_a_shell_finds_no_fault_with_its_script(base, environment, name):
    script = base / "script"
    script.write_text("\n".join(answer(["flue-grpc", "completion", name], environment)) + "\n")
    assert answer([shell(name), "-n", str(script)], environment) == []


def test_zsh_takes_the_script_in(environment, base):
    script = (
        f"source <(flue-grpc completion zsh); ZDOTDIR={base}\n"
        "print -r -- ${_comps[flue-grpc]}; whence -w _flue_grpc\n"
    )
    completes, known = answer([shell("zsh"), "-fc", script], {**environment, "ZDOTDIR": str(base)})
    assert (completes.split()[-1], known) == ("_flue_grpc", "_flue_grpc: function")


@pytest.mark.parametrize("name", ["$(touch owned)", "`touch owned`", "a;b", "a b", "a'b", ""])
def test_an_id_that_a_shell_would_run_is_not_offered(capsys, name):
    """An id is what a transcript says; nobody who presses Tab wants that to run."""
    completion._print_sessions([pb.Summary(id=name, title="x"), pb.Summary(id="a-b_c.1:2")])
    assert capsys.readouterr().out == "a-b_c.1:2\t\n"
