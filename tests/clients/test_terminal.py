"""The commands on a real terminal: what is drawn, and what never reaches it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
CLAUDE = "5f0c2d9e-0000-4000-8000-000000000001"
WHERE = "`flue-grpc doctor` says where transcripts are looked for"
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b]8;;http://x/\x07link\x9b31mred\rover\u202eevil\x7f"

# What our own drawing uses: colours, a hidden cursor, and lines drawn over.
OURS = re.compile(r"\x1b\[[\d;]*m|\x1b\[\?25[lh]|\x1b\[1A|\x1b\[2K|\r(?=\n|\x1b\[2K|$)")
UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain(output):
    return OURS.sub("", output).replace("\r\n", "\n")


@pytest.fixture
def terminal(flags):
    opened = []

    def run(*arguments, **environment):
        opened.append(Terminal([*arguments, *flags], **environment))
        return opened[-1]

    yield run
    for each in opened:
        if each.process.poll() is None:
            os.killpg(each.process.pid, signal.SIGKILL)
            each.process.wait()


def lines(output):
    """The lines that stay; what shows progress was drawn over."""
    shown = [line.rstrip() for line in plain(output).split("\n") if line.strip()]
    return [line for line in shown if "reading transcripts" not in line]


def test_sessions_are_a_table(terminal):
    code, output = terminal("sessions").finish()
    assert code == 0
    assert [line.split() for line in lines(output)[:4]] == [
        ["ended", "tool", "id", "messages", "tokens", "cost", "title"],
        ["2026-07-02", "08:00", "codex", "019f1f1f", "4", "2.0k", "-", *["Raise", "the", "gateway", "timeout"]],
        ["2026-03-01", "09:00", "claude", "5f0c2d9e", "5", "2.1k", "-", "Checkout", "timeout"],
        ["2026-01-02", "03:04", "pi", "019b0000", "5", "37", "$0.25", *["Summarise", "the", "refund", "rules"]],
    ]  # fmt: skip


def test_a_long_title_leaves_room_for_the_rest(terminal, pi_session):
    pi_session("wide", "結" * 60 + " title" * 30)
    _, output = terminal("sessions", "--tool", "pi").finish()
    [row] = [line for line in lines(output) if "wide" in line]
    assert row.split()[:4] == ["2026-02-02", "00:00", "pi", "wide"]
    assert row.endswith("…")


def test_show_folds_tools_and_opens_them_when_asked(terminal):
    _, output = terminal("show", "5f0c").finish()
    text = "\n".join(lines(output))
    assert '▸ Bash {"command":"rg timeout src","limit":10}' in text
    assert "└ error src/pay.py:9: timeout=1" in text
    assert "… thinking Look at the gateway." in text
    assert "\x1b[1;36muser" in output
    _, output = terminal("show", "5f0c", "--tools").finish()
    assert '▸ Bash\n    {"command":"rg timeout src","limit":10}' in "\n".join(lines(output))


def test_prose_is_drawn_as_markdown(terminal, pi_session):
    pi_session("prose", "# Head\n\n- one\n- **two**\n\n```python\nx = 1\n```")
    _, output = terminal("show", "prose").finish()
    assert "• one" in plain(output)
    assert "**two**" not in plain(output)
    assert re.search(r"\x1b\[[\d;]*1[;m][^\n]*two", output)


def test_matches_are_highlighted(terminal):
    code, output = terminal("search", "timeout", "--kind", "text").finish()
    assert code == 0
    assert output.count("\x1b[1;30;43mtimeout\x1b[0m") == 2


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["sessions", "--cwd", "/nowhere"], f"no session matches; {WHERE}"),
        (["usage", "--cwd", "/nowhere"], f"no session matches; {WHERE}"),
        (["search", "absent"], f"no message matches; {WHERE}"),
        (["memory", "list"], "no entry matches"),
    ],
    ids=["sessions", "usage", "search", "memory"],
)
def test_a_person_is_told_that_nothing_was_found(terminal, command, words):
    code, output = terminal(*command).finish()
    assert code == 1
    said = [line.strip() for line in lines(output) if "searching" not in line]
    assert said == [f"flue-grpc: {words}"]


def test_usage_has_bars(terminal):
    _, output = terminal("usage", "--by", "tool").finish()
    rows = {line.split()[0]: line.split()[1:] for line in lines(output)[-3:]}
    assert rows["claude"] == [
        "█" * 24, "2.1k", "21", "73", "1.9k", "120", "-", "1", "7",
    ]  # fmt: skip
    assert (len(rows["pi"][0]), rows["pi"][1:]) == (
        1, ["37", "10", "20", "5", "2", "$0.25", "1", "5"],
    )  # fmt: skip
    assert max(map(len, lines(output))) <= 100


@pytest.mark.parametrize(
    "command",
    [
        ["sessions"], ["show", "hostile"], ["show", "hostile", "--raw"],
        ["show", "hostile", "--json"], ["show", "hostile", "--plain"], ["search", "evil"],
        ["usage", "--by", "cwd"], ["resume", "hostile"],
        ["export", "--transcript", "hostile"],
        ["export", "--transcript", "hostile", "--format", "markdown"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_no_sequence_of_a_transcript_reaches_the_terminal(terminal, pi_session, command):
    pi_session("hostile", HOSTILE, f"```\n{HOSTILE}\n```", cwd=f"/tmp/{HOSTILE}")
    code, output = terminal(*command).finish()
    assert code == 0
    assert "evil" in output
    assert UNSAFE.findall(OURS.sub("", output)) == []
    assert "http://x/" not in output or "\x1b]8" not in output


def test_memory_is_made_safe_too(terminal):
    assert terminal("memory", "add", HOSTILE, "--scope", "x").finish()[0] == 0
    code, output = terminal("memory", "list", "--scope", "x").finish()
    assert (code, "evil" in output) == (0, True)
    assert UNSAFE.findall(OURS.sub("", output)) == []


def test_a_pager_gets_the_output_and_may_be_left_early(terminal, pi_session):
    pi_session("long", *(f"message number {n}" for n in range(2000)))
    code, output = terminal("show", "long", PAGER="tail -n 1").finish()
    assert code == 0
    assert "message number 1999" in output
    assert "message number 5 " not in output
    code, output = terminal("show", "long", PAGER="true").finish()
    assert code == 0
    assert "Traceback" not in output


def test_tail_follows_until_interrupted(terminal, pi_session):
    session = pi_session("live", "first", "second")
    tail = terminal("tail", "live", "-n", "1")
    tail.read_until("second")
    assert "first" not in tail.output
    session.say("third")
    tail.read_until("third")
    os.killpg(tail.process.pid, signal.SIGINT)
    code, output = tail.finish()
    assert code == 130
    assert "Traceback" not in output


WRITER = """
import sys

with open(sys.argv[1], "ab", buffering=0) as file:
    for line in sys.stdin.buffer:
        file.write(line.rstrip(b"\\n").replace(b"|", b"\\n"))
"""


def test_tail_prints_each_message_while_another_process_writes_it(terminal, pi_session):
    session = pi_session("live", "first")

    def message(text):
        body = {"role": "user", "content": text}
        return json.dumps({"type": "message", "id": "0000000f", "message": body})

    tail = terminal("tail", "live")
    tail.read_until("first")
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, session.path], stdin=subprocess.PIPE, text=True
    ) as writer:

        def write(piece):
            """Have the process append this, with ``|`` for a newline."""
            writer.stdin.write(f"{piece}\n")
            writer.stdin.flush()

        for number in range(5):
            write(f"{message(f'whole {number}')}|")
            tail.read_until(f"whole {number}")
        half = message("in two pieces")
        write(half[:30])
        write(f"{half[30:]}|")
        tail.read_until("in two pieces")
        write(f"{message('glued one')}{message('glued two')}|not json|")
        tail.read_until("glued two")
        write(message("without a newline"))
        tail.read_until("without a newline")
        write(f"{message('its neighbour')}|{message('last')}|")
        tail.read_until("last")
    os.killpg(tail.process.pid, signal.SIGINT)
    code, output = tail.finish()
    assert code == 130
    said = [f"whole {number}" for number in range(5)]
    said += ["in two pieces", "glued one", "glued two", "without a newline", "its neighbour"]
    places = [[found.start() for found in re.finditer(text, output)] for text in [*said, "last"]]
    assert [len(found) for found in places] == [1] * len(places)
    assert places == sorted(places)


def test_a_closed_pipe_is_no_error(flags, pi_session):
    pi_session("long", *(f"message number {n}" for n in range(5000)))
    command = " ".join([sys.executable, "-m", "flue_grpc", "show", "long", *flags])
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -n 1"], capture_output=True, text=True, check=True,
        cwd=ROOT,
    )  # fmt: skip
    assert done.stdout.split("\t")[3] == "message number 0\n"
    assert done.stderr == ""
