from __future__ import annotations

import pytest

from flue_grpc.errors import ConfigError
from flue_grpc.security.roles import Principal, Role
from flue_grpc.security.token_edit import add_token, list_tokens, remove_token
from flue_grpc.security.tokens import create_token_file, read_token_file


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "tokens"
    create_token_file(path)
    return path


def test_a_token_is_added_beside_the_others(path):
    token = add_token(path, Role.READ, "viewer")
    assert list_tokens(path) == (Principal("default", Role.FULL), Principal("viewer", Role.READ))
    assert read_token_file(path).identify(token) == Principal("viewer", Role.READ)
    assert path.stat().st_mode & 0o7777 == 0o600


def test_comments_and_foreign_lines_stay(path):
    path.write_text(path.read_text() + "# mine\nnonsense")
    add_token(path, Role.READ, "viewer")
    lines = path.read_text().splitlines()
    assert lines[3:5] == ["# mine", "nonsense"]
    assert list_tokens(path)[-1] == Principal("viewer", Role.READ)


def test_a_missing_file_is_made_with_this_token_alone(tmp_path):
    path = tmp_path / "tokens"
    add_token(path, Role.FULL, "agent")
    assert list_tokens(path) == (Principal("agent", Role.FULL),)
    assert path.stat().st_mode & 0o7777 == 0o600


def test_a_removed_token_is_gone_and_the_others_stay(path):
    token = add_token(path, Role.READ, "viewer")
    remove_token(path, "default")
    assert list_tokens(path) == (Principal("viewer", Role.READ),)
    assert read_token_file(path).identify(token) is not None
    remove_token(path, "viewer")
    assert list_tokens(path) == ()


@pytest.mark.parametrize("name", ["", "two words", "a\nb", "x" * 65, "é"])
def test_a_name_of_bad_form_is_refused(path, name):
    with pytest.raises(ConfigError, match="1 to 64"):
        add_token(path, Role.READ, name)


def test_a_name_is_given_once_and_removed_only_when_there(path):
    with pytest.raises(ConfigError, match="already"):
        add_token(path, Role.READ, "default")
    with pytest.raises(ConfigError, match="no token named viewer"):
        remove_token(path, "viewer")


def test_a_file_that_others_can_read_is_not_edited(path):
    path.chmod(0o644)
    for edit in (
        lambda: add_token(path, Role.READ, "viewer"),
        lambda: remove_token(path, "default"),
    ):
        with pytest.raises(ConfigError, match="mode 0644"):
            edit()


def test_a_failed_edit_leaves_the_file_and_nothing_beside_it(path, monkeypatch):
    before = path.read_bytes()

    def fail(_self, _target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(path), "replace", fail)
    with pytest.raises(ConfigError, match="No space left"):
        add_token(path, Role.READ, "viewer")
    assert [p.name for p in path.parent.iterdir()] == ["tokens"]
    assert path.read_bytes() == before
