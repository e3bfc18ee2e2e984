from __future__ import annotations

import pytest

from flue_grpc.cli import main
from flue_grpc.security.tokens import read_token_file


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))

    def run(*arguments):
        code = main(["token", *arguments, "--data-dir", str(tmp_path / "data")])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data"
    path.mkdir()
    return path


def test_a_token_is_made_listed_and_removed(run, data):
    code, made, _ = run("new", "viewer", "--role", "read")
    assert (code, len(made)) == (0, 44)
    principal = read_token_file(data / "tokens").identify(made.strip())
    assert (principal.name, principal.role) == ("viewer", "read")
    assert run("list") == (0, "read\tviewer\n", "")
    assert run("remove", "viewer") == (0, "", "")


def test_a_list_of_nothing_says_how_there_is_one(run, data):
    nothing = (
        f"flue-grpc: there is no token in {data}/tokens; `flue-grpc token new NAME` makes one\n"
    )
    assert run("list") == (1, "", nothing)
    run("new", "viewer")
    run("remove", "viewer")
    assert run("list") == (1, "", nothing)


def test_faults_are_told_in_words(run, data):
    code, out, err = run("remove", "nobody")
    assert (code, out) == (2, "")
    assert err.startswith("flue-grpc: ")
    run("new", "a")
    assert "already" in run("new", "a")[2]


def test_the_list_shows_no_token(run, data):
    _, made, _ = run("new", "a")
    assert made.strip() not in run("list")[1]
