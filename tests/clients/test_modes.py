"""The modes of what commands make when no server runs, whatever the umask."""

from __future__ import annotations

import os
import stat

import pytest

from flue_grpc.cli import main

TRANSCRIPT = "5f0c"


@pytest.fixture(params=[0o000, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(directory):
    return {
        path.relative_to(directory): (path.is_dir(), stat.S_IMODE(path.stat().st_mode))
        for path in directory.rglob("*")
    }


def test_all_that_commands_make_is_its_owners_alone(base, home, umask):
    made = base / "data"
    commands = (
        ("memory", "add", "a note"),
        ("sessions",),
        ("search", "timeout"),
        ("backup", made / "backup.db"),
        ("export", "-o", made / "all.jsonl"),
        ("export", "--format", "markdown", "-o", made / "all.md"),
        ("export", "--transcript", TRANSCRIPT, "-o", made / "page.html"),
        ("export", "--transcript", TRANSCRIPT, "--format", "json", "-o", made / "page.json"),
        ("import", made / "all.jsonl"),
        ("restore", made / "backup.db"),
        ("check", "--repair"),
        ("memory", "list"),
        ("token", "new", "somebody"),
    )
    for command in commands:
        of_home = command[0] in {"sessions", "search", "memory"} or TRANSCRIPT in command
        where = ["--home", str(home)] if of_home else []
        assert main([*map(str, command), "--data-dir", str(made), *where]) == 0, command
    found = modes(made)
    assert {"store.db", "tokens", "page.html", "backup.db"} <= {path.name for path in found}
    wrong = {p: oct(m) for p, (folder, m) in found.items() if m != (0o700 if folder else 0o600)}
    assert wrong == {}
