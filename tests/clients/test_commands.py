"""The commands for people, without a server that runs."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess

import pytest

from flue_grpc.cli import COMMANDS, main

CLAUDE = "5f0c2d9e-0000-4000-8000-000000000001"
CODEX = "019f1f1f-0000-7000-8000-00000000000a"
PI = "019b0000-0000-7000-8000-00000000000b"
ESCAPES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31mred\rover\u202eevil\x00\x7f"


def rows(text):
    return [line.split("\t") for line in text.splitlines()]


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def test_sessions_are_tab_separated_when_piped(flue):
    code, out, err = flue("sessions")
    assert code == 0
    assert rows(out) == [
        [
            "2026-07-02T08:00:05Z",
            "codex",
            CODEX,
            "4",
            "/home/dev/shop",
            "Raise the gateway timeout",
        ],
        ["2026-03-01T09:00:08Z", "claude", CLAUDE, "5", "/home/dev/shop", "Checkout timeout"],
        ["2026-01-02T03:04:10Z", "pi", PI, "5", "/home/dev/shop", "Summarise the refund rules"],
    ]
    assert err == "flue-grpc: hidden: 1 of subagents; --subagents shows them\n"


def test_sessions_as_json_have_every_field(flue):
    code, out, _ = flue("sessions", "--json", "--tool", "pi")
    [summary] = objects(out)
    assert code == 0
    assert (summary["id"], summary["cost_usd"]) == (PI, 0.25)
    assert summary["tokens"] == {"input": 10, "output": 20, "cache_read": 5, "cache_write": 2}
    assert summary["resume"] == {
        "command": "pi", "args": ["--session", PI], "dir": "/home/dev/shop",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("filters", "tools"),
    [
        (["--limit", "1"], ["codex"]),
        (["--limit", "0", "--subagents"], ["codex", "claude", "claude", "pi"]),
        (["--tool", "pi", "--tool", "codex"], ["codex", "pi"]),
        (["--since", "2026-03-01", "--until", "2026-03-02"], ["claude"]),
        (["--since", "2026-07-02T08:00:05+00:00"], ["codex"]),
        (["--cwd", "/home/dev/shop"], ["codex", "claude", "pi"]),
    ],
)
def test_sessions_are_filtered(flue, filters, tools):
    code, out, _ = flue("sessions", *filters)
    assert (code, [row[1] for row in rows(out)]) == (0, tools)


def test_no_session_is_exit_code_1(flue):
    assert flue("sessions", "--cwd", "/nowhere") == (1, "", "")


@pytest.mark.parametrize("command", [["sessions"], ["search", "x"], ["usage"]], ids=" ".join)
def test_an_unknown_tool_is_named_beside_those_that_are_known(flue, command):
    code, out, err = flue(*command, "--tool", "foo")
    assert (code, out) == (2, "")
    assert err.endswith(
        "error: argument --tool: invalid choice: 'foo' (choose from 'claude', 'codex', 'pi')\n"
    )


@pytest.mark.parametrize("style", [[], ["--json"], ["--plain"]], ids=" ".join)
@pytest.mark.parametrize("command", [["search", "absent"], ["usage", "--cwd", "/nowhere"]])
def test_a_pipe_hears_nothing_of_what_is_not_found(flue, command, style):
    assert flue(*command, *style) == (1, "", "")


def test_a_bad_time_is_a_mistake_in_usage(flue):
    code, _, err = flue("sessions", "--since", "yesterdayish")
    assert code == 2
    assert "'yesterdayish' is no time such as 2026-03-01 or 7d" in err


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["search", ""], "EMPTY_QUERY"),
        (["search", "--ranked", '"'], "BAD_QUERY"),
        (["search", "x", "--limit", "-1"], "BAD_LIMIT"),
        (["sessions", "--limit", "-1"], "BAD_LIMIT"),
        (["usage", "--time-zone", "Mars"], "BAD_TIME_ZONE"),
        (["memory", "search", "", "--scope", "x"], "EMPTY_QUERY"),
    ],
)
def test_a_refusal_is_exit_code_2(flue, command, reason):
    code, out, err = flue(*command)
    assert (code, out) == (2, "")
    assert err.startswith(f"flue-grpc: {reason}: ")


def test_show_folds_into_one_line_per_message(flue):
    code, out, _ = flue("show", "5f0c")
    assert code == 0
    assert [row[1:] for row in rows(out)] == [
        ["user", "text", "Why does the checkout time out? 結帳逾時"],
        ["assistant", "thinking", "Look at the gateway."],
        ["assistant", "tool_call Bash", '{"command":"rg timeout src","limit":10}'],
        ["user", "tool_result", "src/pay.py:9: timeout=1"],
        ["assistant", "text", "The gateway gives up after 1 s."],
    ]
    assert rows(out)[0][0] == "0.0"


def test_show_raw_is_the_texts_alone(flue):
    _, out, _ = flue("show", f"pi:{PI}", "--raw")
    assert out.splitlines() == [
        "Summarise the refund rules",
        "Look at refunds.md.",
        "Refunds close after 30 days.",
        '{"path":"refunds.md"}',
        "30 days",
    ]


def test_show_reads_the_last_messages_and_from_an_offset(flue):
    _, out, _ = flue("show", PI, "--last", "1", "--json")
    [message] = objects(out)
    assert (message["kind"], message["text"]) == ("tool_result", "30 days")
    _, out, _ = flue("show", PI, "--at", str(message["offset"]), "--json")
    assert objects(out) == [message]


def test_show_fetches_whole_texts(flue, pi_session):
    pi_session("long", "x" * 40_000)
    _, out, _ = flue("show", "long", "--json")
    assert [(len(m["text"]), m["truncated"]) for m in objects(out)] == [(16_384, True)]
    _, out, _ = flue("show", "long", "--json", "--whole")
    assert [(len(m["text"]), m["truncated"]) for m in objects(out)] == [(40_000, False)]


def test_an_ambiguous_beginning_names_what_it_may_be(flue):
    code, out, err = flue("show", "01")
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "flue-grpc: '01' is the beginning of 2 sessions:",
        f"flue-grpc: codex:{CODEX}  Raise the gateway timeout",
        f"flue-grpc: pi:{PI}  Summarise the refund rules",
    ]


def test_an_unknown_id_is_exit_code_1(flue):
    code, _, err = flue("resume", "zzz")
    assert code == 1
    assert err == "flue-grpc: no session begins with 'zzz'; `flue-grpc sessions` lists them\n"


def test_an_exact_id_wins_over_longer_ones(flue, pi_session):
    pi_session("abc", "one")
    pi_session("abcd", "two")
    assert rows(flue("show", "abc")[1])[0][3] == "one"


@pytest.mark.parametrize("shell", ["sh", "dash", "bash", "zsh"])
@pytest.mark.parametrize(
    "evil",
    ["/tmp/$(touch owned) 'x'\x1b]0;y\x07", "/tmp/\x01'; exit 9; '", "/tmp/\n'; exit 9; #"],
    ids=["escape", "quote", "line"],
)
def test_resume_prints_a_line_that_a_shell_reads_back(flue, pi_session, shell, evil):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    pi_session("evil", "hi", cwd=evil)
    _, out, _ = flue("resume", "evil")
    assert out.count("\n") == 1
    assert not ESCAPES.search(out.rstrip("\n"))
    words = subprocess.run(
        [shell, "-c", f'cd() {{ printf %s "$2"; }}; pi() {{ :; }}; {out}'],
        capture_output=True, text=True, check=True, cwd="/",
    )  # fmt: skip
    assert words.stdout == evil


def test_resume_prints_the_plain_line_of_a_plain_session(flue):
    code, out, _ = flue("resume", "5f0c")
    assert (code, out) == (0, f"cd -- /home/dev/shop && claude --resume {CLAUDE}\n")


def test_resume_refuses_a_directory_that_no_line_can_name(flue, pi_session):
    pi_session("evil", "hi", cwd="/tmp/x\n")
    code, out, err = flue("resume", "evil")
    assert (code, out) == (2, "")
    assert err == "flue-grpc: no line of a shell can name '/tmp/x\\n'; --json has the parts\n"
    assert json.loads(flue("resume", "evil", "--json")[1])["dir"] == "/tmp/x\n"


def test_resume_without_a_directory_says_so(flue, pi_session):
    pi_session("lost", "hi", cwd="")
    code, out, err = flue("resume", "lost")
    assert (code, out) == (1, "")
    assert "does not say where it ran" in err


def test_search_prints_places_and_snippets(flue):
    code, out, _ = flue("search", "TIMEOUT", "--kind", "text")
    assert code == 0
    assert [(r[0], r[1], r[4]) for r in rows(out)] == [
        ("codex", CODEX, "Raise the gateway timeout"),
        ("codex", CODEX, "The gateway timeout is 9 s now."),
    ]
    assert flue("search", "absent")[:2] == (1, "")


def test_search_says_when_there_is_more(flue):
    code, out, err = flue("search", "timeout", "--limit", "1")
    assert (code, len(rows(out))) == (0, 1)
    assert err == "flue-grpc: there is more than 1 hit; --limit 0 shows all\n"
    _, _, err = flue("search", "timeout", "--limit", "2")
    assert err == "flue-grpc: there are more than 2 hits; --limit 0 shows all\n"


def test_ranked_search_has_its_own_language(flue):
    code, out, _ = flue("search", "--ranked", '"gateway timeout" raise', "--json")
    assert code == 0
    assert [(hit["tool"], hit["role"]) for hit in objects(out)] == [("codex", "user")]
    code, _, err = flue("search", "--ranked", 'say "never')
    assert code == 2
    assert err.startswith("flue-grpc: BAD_QUERY: ")


def test_usage_sums_by_keys(flue):
    code, out, _ = flue("usage", "--by", "tool")
    assert code == 0
    assert rows(out) == [
        ["claude", "21", "73", "1900", "120", "", "1", "7"],
        ["codex", "1700", "50", "300", "0", "", "1", "4"],
        ["pi", "10", "20", "5", "2", "0.25", "1", "5"],
    ]
    _, out, _ = flue("usage", "--by", "none", "--json")
    assert [row["tokens"]["input"] for row in objects(out)] == [1731]


def test_usage_days_are_those_of_the_zone(flue):
    _, out, _ = flue("usage", "--tool", "codex", "--time-zone", "Pacific/Kiritimati")
    assert [row[0] for row in rows(out)] == ["2026-07-02"]
    _, out, _ = flue("usage", "--tool", "pi", "--time-zone", "America/New_York")
    assert [row[0] for row in rows(out)] == ["2026-01-01"]


def test_usage_as_csv_has_a_head_and_no_formula(flue, pi_session):
    pi_session("formula", "hi", cwd="=HYPERLINK(1)")
    _, out, _ = flue("usage", "--by", "cwd", "--csv")
    table = list(csv.reader(io.StringIO(out)))
    assert table[0] == [
        "cwd", "input", "output", "cache_read", "cache_write", "cost_usd", "sessions", "messages",
    ]  # fmt: skip
    assert [row[0] for row in table[1:]] == ["/home/dev/shop", "'=HYPERLINK(1)"]


def test_memory_is_kept_and_changed(flue, base, monkeypatch):
    monkeypatch.chdir(base)
    code, out, _ = flue("memory", "add", "Tabs, not spaces")
    assert (code, out) == (0, "1\n")
    flue("memory", "add", "Everywhere", "--scope", "_global", "--pin")
    _, out, _ = flue("memory", "list")
    assert [(r[0], r[1], r[3], r[4]) for r in rows(out)] == [
        ("2", "pinned", "_global", "Everywhere"),
        ("1", "", str(base), "Tabs, not spaces"),
    ]
    assert flue("memory", "size")[1] == "16\n"
    assert flue("memory", "edit", "1", "Spaces")[0] == 0
    _, out, _ = flue("memory", "search", "spaces", "--json")
    assert [(e["id"], e["content"]) for e in objects(out)] == [(1, "Spaces")]
    assert flue("memory", "unpin", "2")[0] == 0
    assert flue("memory", "pin", "1")[0] == 0
    _, out, _ = flue("memory", "list", "--limit", "1")
    assert [row[0] for row in rows(out)] == ["1"]
    assert flue("memory", "delete", "1")[0] == 0
    code, _, err = flue("memory", "delete", "1")
    assert code == 1
    assert err.startswith("flue-grpc: MEMORY_NOT_FOUND: ")


def test_commands_on_transcripts_leave_the_store_alone(home, base, capfd):
    assert main(["sessions", "--home", str(home)]) == 0
    assert sorted(path.name for path in base.iterdir()) == ["config", "home"]
    assert capfd.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        ["sessions"], ["sessions", "--json"], ["show", "hostile"], ["show", "hostile", "--raw"],
        ["show", "hostile", "--json"], ["search", "evil"], ["search", "evil", "--json"],
        ["usage", "--by", "cwd"], ["usage", "--by", "cwd", "--csv"],
        ["usage", "--by", "cwd", "--json"], ["resume", "hostile"], ["resume", "hostile", "--json"],
        ["export", "--transcript", "hostile", "--format", "json"],
        ["export", "--transcript", "hostile", "--format", "markdown"],
        ["export", "--transcript", "hostile", "--format", "html"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_no_escape_sequence_is_printed(flue, pi_session, command):
    pi_session("hostile", HOSTILE, cwd="/tmp/" + HOSTILE.replace("\0", ""))
    code, out, _ = flue(*command)
    assert code == 0
    assert "evil" in out
    assert not ESCAPES.search(out)


def test_every_command_has_examples_or_flags_in_its_help(capsys):
    for name in COMMANDS:
        if name == "database":
            continue
        with pytest.raises(SystemExit) as exit_:
            main([name, "--help"])
        assert exit_.value.code == 0
        assert f"usage: flue-grpc {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["sessions", "show", "search", "tail", "usage", "resume", "memory", "export"]
)
def test_the_help_of_a_command_that_asks_a_server_tells_the_exit_codes(capsys, name):
    with pytest.raises(SystemExit):
        main([name, "--help"])
    assert capsys.readouterr().out.endswith(
        "\nexit code: 0 found or done, 1 nothing found, 2 it could not be done\n"
    )
