"""What breaks a client is noticed, wherever the repository stands."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IDENTITY = {
    f"GIT_{who}_{what}": f"{what.lower()}@example.invalid"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}
# Neither the settings of a user nor a hook that runs these tests may point at another repository.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
ENVIRONMENT |= IDENTITY | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
ADDED = ("bool pinned = 4;", "bool pinned = 4;\n  bool starred = 50;")
RENAMED = ("bool pinned = 4;", "bool fixed = 4;")
TAKEN_BACK = (ADDED[1], ADDED[0])


class Repository:
    """A repository of the protos and the check, with commits of its own."""

    def __init__(self, path):
        self.path = path
        self.proto = path / "proto/flue/store/v1/store.proto"

    def git(self, *arguments):
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env=ENVIRONMENT, check=True, capture_output=True
        )
        return done.stdout.decode().strip()

    def edit(self, change):
        text = self.proto.read_text()
        assert change[0] in text
        self.proto.write_text(text.replace(*change, 1))

    def commit(self, change=("syntax", "// Compared.\nsyntax")):
        self.edit(change)
        self.git("commit", "-qam", "a change")

    def check(self):
        done = subprocess.run(
            ["bash", self.path / "scripts/check-breaking"],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


def bring_tools(path):
    (path / ".venv").symlink_to(ROOT / ".venv")


@pytest.fixture
def repository(tmp_path):
    path = tmp_path / "first"
    shutil.copytree(ROOT / "proto", path / "proto")
    (path / "scripts").mkdir()
    for name in ("buf.yaml", "scripts/check-breaking"):
        shutil.copy(ROOT / name, path / name)
    made = Repository(path)
    made.git("init", "-q", "-b", "main")
    made.git("add", ".")
    made.git("commit", "-qm", "the first")
    bring_tools(path)
    return made


def passes(outcome, against):
    assert outcome == (0, f"check-breaking: nothing breaks what {against} has\n")


def fails(outcome, field='"4" with name "fixed"'):
    assert outcome[0] == 100
    assert field in outcome[1]


def test_a_first_commit_has_nothing_to_break(repository):
    skipped = "check-breaking: skipped: there is no earlier version in this clone\n"
    assert repository.check() == (0, skipped)


def test_on_main_a_commit_is_held_to_the_one_before(repository):
    before = repository.git("rev-parse", "--short", "HEAD")
    repository.commit(ADDED)
    passes(repository.check(), before)
    repository.commit(RENAMED)
    fails(repository.check())


def test_what_is_not_committed_is_held_to_the_last_commit(repository):
    repository.edit(RENAMED)
    fails(repository.check())


def test_a_branch_is_held_to_where_it_left_main(repository):
    repository.git("checkout", "-qb", "branch")
    repository.commit(RENAMED)
    repository.commit()
    fails(repository.check())


def test_a_clone_is_held_to_what_was_fetched(repository, tmp_path):
    repository.git("clone", "-q", repository.path, tmp_path / "clone")
    clone = Repository(tmp_path / "clone")
    bring_tools(clone.path)
    clone.commit(RENAMED)
    clone.commit()
    fails(clone.check())


def test_a_shallow_clone_says_that_it_has_nothing_to_compare_with(repository, tmp_path):
    repository.commit(RENAMED)
    repository.git("clone", "-q", "--depth=1", f"file://{repository.path}", tmp_path / "clone")
    clone = Repository(tmp_path / "clone")
    bring_tools(clone.path)
    assert clone.check()[1].startswith("check-breaking: skipped: ")


def test_the_last_release_is_what_counts(repository):
    repository.git("tag", "v0.1.0")
    repository.commit(ADDED)
    repository.commit(TAKEN_BACK)
    passes(repository.check(), "v0.1.0")
    repository.commit(RENAMED)
    repository.commit()
    fails(repository.check())


def test_a_release_is_held_to_the_one_before(repository):
    repository.git("tag", "v0.1.0")
    repository.commit(ADDED)
    repository.git("tag", "v0.2.0")
    passes(repository.check(), "v0.1.0")
    repository.edit(TAKEN_BACK)
    fails(repository.check(), field='"50"')


def test_the_static_checks_include_it():
    assert "\nscripts/check-breaking\n" in (ROOT / "scripts/lint").read_text()
