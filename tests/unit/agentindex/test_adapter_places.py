from __future__ import annotations

import pytest

from flue_grpc.agentindex.adapters.base import Root, Source
from flue_grpc.agentindex.adapters.claude import Claude, is_munged
from flue_grpc.agentindex.adapters.codex import Codex
from flue_grpc.agentindex.adapters.pi import Pi
from flue_grpc.agentindex.adapters.registry import ADAPTERS

CLAUDE, CODEX, PI = Claude(), Codex(), Pi()
PROJECTS = Root("/h/.claude/projects", "projects")
SESSIONS = Root("/h/.codex/sessions", "sessions")
ARCHIVE = Root("/h/.codex/archived_sessions", "archived_sessions")
UUID = "019f1f1f-0000-7000-8000-00000000000a"


def paths(adapter, env):
    return [root.path for root in adapter.roots("/h", env)]


def test_every_tool_is_registered_once():
    assert [adapter.tool for adapter in ADAPTERS] == ["claude", "codex", "pi"]


@pytest.mark.parametrize(
    ("adapter", "env", "expected"),
    [
        (CLAUDE, {}, ["/h/.claude/projects", "/h/.config/claude/projects"]),
        (CLAUDE, {"CLAUDE_CONFIG_DIR": "/c"}, ["/c/projects"]),
        (CLAUDE, {"CLAUDE_CONFIG_DIR": "~/c"}, ["/h/c/projects"]),
        (
            CLAUDE,
            {"XDG_CONFIG_HOME": "/x"},
            ["/h/.claude/projects", "/x/claude/projects", "/h/.config/claude/projects"],
        ),
        (CODEX, {}, ["/h/.codex/sessions", "/h/.codex/archived_sessions"]),
        (CODEX, {"CODEX_HOME": "/c/"}, ["/c/sessions", "/c/archived_sessions"]),
        (PI, {}, ["/h/.pi/agent/sessions"]),
        (PI, {"PI_CODING_AGENT_DIR": "~"}, ["/h/sessions"]),
        (PI, {"PI_CODING_AGENT_SESSION_DIR": "/s", "PI_CODING_AGENT_DIR": "/a"}, ["/s"]),
        (PI, {"PI_CODING_AGENT_SESSION_DIR": ""}, ["/h/.pi/agent/sessions"]),
    ],
)
def test_roots_follow_the_environment(adapter, env, expected):
    assert paths(adapter, env) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("-p/abc.jsonl", Source("claude", "abc", folder="-p")),
        ("-p/agent-1.jsonl", Source("claude", "agent-1", is_subagent=True, folder="-p")),
        (
            "-p/abc/subagents/agent-1.jsonl",
            Source("claude", "abc.agent-1", "abc", is_subagent=True, folder="-p"),
        ),
        (
            "-p/abc/subagents/workflows/wf_1/agent-1.jsonl",
            Source("claude", "abc.agent-1", "abc", is_subagent=True, folder="-p"),
        ),
    ],
)
def test_claude_sessions_and_subagents_are_told_by_their_place(path, expected):
    assert CLAUDE.candidate(PROJECTS, tuple(path.split("/"))) == expected


@pytest.mark.parametrize(
    "path",
    [
        "abc.jsonl",
        "-p/abc.json",
        "-p/abc.jsonl.tmp",
        "-p/.abc.jsonl",
        "-p/.jsonl",
        "-p/-c.jsonl",
        "-p/a b.jsonl",
        "-p/a\udcff.jsonl",
        "-p/" + "a" * 129 + ".jsonl",
        "-p/abc/tool-results/x.jsonl",
        "-p/abc/agent-1.jsonl",
        "-p/abc/subagents/journal.jsonl",
        "-p/abc/other/agent-1.jsonl",
        "-p/a b/subagents/agent-1.jsonl",
    ],
)
def test_claude_takes_nothing_else(path):
    assert CLAUDE.candidate(PROJECTS, tuple(path.split("/"))) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("-p", True),
        (".hidden", False),
        ("-p/abc", True),
        ("-p/abc/subagents", True),
        ("-p/abc/tool-results", False),
        ("-p/abc/subagents/workflows/wf_1", True),
        ("-p/abc/subagents/.git", False),
    ],
)
def test_claude_enters_what_can_hold_sessions(path, expected):
    assert CLAUDE.enters(PROJECTS, tuple(path.split("/"))) is expected


@pytest.mark.parametrize(
    ("cwd", "folder", "expected"),
    [
        ("/a/b.c_d", "-a-b-c-d", True),
        ("/a/b", "-a-c", False),
        ("/\u00e9", "--", True),
        ("/\U0001f600", "---", True),
        ("/" + "a" * 300, "-" + "a" * 199 + "-1x2y3z", True),
        ("/" + "a" * 300, "-" + "b" * 199 + "-1x2y3z", False),
        ("/" + "a" * 199, "-" + "a" * 199, True),
    ],
)
def test_a_folder_is_known_by_the_directory_it_is_named_after(cwd, folder, expected):
    assert is_munged(cwd, folder) is expected


NAME = f"rollout-2026-07-02T08-00-00-{UUID}.jsonl"


@pytest.mark.parametrize(
    ("root", "path", "rank"),
    [
        (SESSIONS, f"2026/07/02/{NAME}", 0),
        (SESSIONS, NAME, 0),
        (ARCHIVE, NAME, 1),
    ],
)
def test_codex_sessions_are_named_by_the_uuid_at_the_end(root, path, rank):
    assert CODEX.candidate(root, tuple(path.split("/"))) == Source("codex", UUID, rank=rank)


def test_a_codex_uuid_may_be_written_without_dashes():
    plain = UUID.replace("-", "")
    assert CODEX.candidate(ARCHIVE, (f"rollout-x-{plain}.jsonl",)).id == plain


@pytest.mark.parametrize(
    ("root", "path"),
    [
        (SESSIONS, f"2026/07/02/{NAME}.zst"),
        (SESSIONS, f"2026/07/02/{NAME}.tmp"),
        (SESSIONS, f"2026/07/02/{UUID}.jsonl"),
        (SESSIONS, "2026/07/02/rollout-2026-07-02T08-00-00-x.jsonl"),
        (SESSIONS, f"2026/07/02/rollout-{UUID}.json"),
        (SESSIONS, f"2026/07/02/x/{NAME}"),
        (SESSIONS, f"2026/07/02/.{NAME}"),
        (ARCHIVE, f"2026/{NAME}"),
    ],
)
def test_codex_takes_nothing_else(root, path):
    assert CODEX.candidate(root, tuple(path.split("/"))) is None


def test_codex_enters_dates_but_no_archive():
    assert CODEX.enters(SESSIONS, ("2026", "07", "02"))
    assert not CODEX.enters(SESSIONS, ("2026", "07", "02", "x"))
    assert not CODEX.enters(ARCHIVE, ("2026",))


NESTED, FLAT = Root("/h/.pi/agent/sessions", "sessions"), Root("/s", "flat")


@pytest.mark.parametrize(
    ("root", "path", "session_id"),
    [
        (NESTED, "--home-dev--/2026-01-02T03-04-05-000Z_abc.jsonl", "abc"),
        (NESTED, "2026-01-02T03-04-05-000Z_a_b.jsonl", "a_b"),
        (NESTED, "--p--/name.jsonl", "name"),
        (FLAT, "x_y.jsonl", "y"),
    ],
)
def test_pi_sessions_have_an_id_in_their_name(root, path, session_id):
    assert PI.candidate(root, tuple(path.split("/"))) == Source("pi", session_id)


@pytest.mark.parametrize(
    ("root", "path"),
    [(NESTED, "a/b/x.jsonl"), (FLAT, "a/x.jsonl"), (NESTED, "a/x.json"), (NESTED, "a/.x.jsonl")],
)
def test_pi_takes_nothing_else(root, path):
    assert PI.candidate(root, tuple(path.split("/"))) is None


def test_pi_enters_one_level_and_none_of_a_flat_root():
    assert PI.enters(NESTED, ("--p--",))
    assert not PI.enters(NESTED, ("--p--", "x"))
    assert not PI.enters(FLAT, ("x",))
