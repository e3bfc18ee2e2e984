from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from flue_grpc.errors import ConfigError
from flue_grpc.security import token_storage
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


@pytest.fixture
def as_root():
    return None if os.geteuid() == 0 else pytest.skip("needs root to give a file away")


def owner_of(path):
    status = path.stat()
    return status.st_uid, status.st_gid, status.st_mode & 0o7777


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640])
def test_a_file_that_root_edits_stays_its_owners(path, mode):
    os.chown(path, 12345, 54321)
    path.chmod(mode)
    add_token(path, Role.READ, "viewer")
    assert owner_of(path) == (12345, 54321, mode)
    remove_token(path, "default")
    assert owner_of(path) == (12345, 54321, mode)
    assert [p.name for p in path.parent.iterdir()] == ["tokens"]


@pytest.mark.usefixtures("as_root")
def test_a_file_that_root_makes_is_the_directorys_owners(tmp_path):
    os.chown(tmp_path, 12345, 54321)
    add_token(tmp_path / "tokens", Role.FULL, "agent")
    create_token_file(tmp_path / "others")
    assert owner_of(tmp_path / "tokens") == owner_of(tmp_path / "others") == (12345, 54321, 0o600)


def test_a_file_that_cannot_be_given_to_its_owner_is_not_replaced(path, monkeypatch):
    before = path.read_bytes()
    status = list(path.stat())
    status[stat.ST_UID] = 54321

    def fail(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", fail)
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result(status))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(ConfigError, match="cannot write the token file"):
        add_token(path, Role.READ, "viewer")
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["tokens"]


def test_a_link_stays_and_the_file_that_it_leads_to_is_edited(path, tmp_path):
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "tokens"
    link.symlink_to("../tokens")
    add_token(link, Role.READ, "viewer")
    assert link.is_symlink()
    assert not path.is_symlink()
    assert list_tokens(path)[-1] == Principal("viewer", Role.READ)
    remove_token(link, "viewer")
    assert list_tokens(path) == (Principal("default", Role.FULL),)


def test_a_link_to_what_is_not_there_yet_leads_to_a_new_file(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "tokens")
    add_token(tmp_path / "link", Role.FULL, "agent")
    assert (tmp_path / "link").is_symlink()
    assert list_tokens(tmp_path / "tokens") == (Principal("agent", Role.FULL),)


def test_a_link_in_a_circle_is_told_in_words(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(ConfigError, match="cannot follow the token file"):
        add_token(tmp_path / "a", Role.FULL, "agent")


@pytest.mark.usefixtures("as_root")
def test_a_link_of_another_user_is_not_followed(path, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(path)
    os.chown(link, 12345, -1, follow_symlinks=False)
    with pytest.raises(ConfigError, match="a link of user 12345 to a file of user 0"):
        add_token(link, Role.READ, "viewer")
    os.chown(path, 12345, -1)
    add_token(link, Role.READ, "viewer")
    assert list_tokens(path)[-1] == Principal("viewer", Role.READ)


def test_edits_at_once_lose_nothing(path):
    names = [f"n{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(lambda name: add_token(path, Role.READ, name), names))
    known = read_token_file(path)
    assert sorted(p.name for p in list_tokens(path)) == sorted(["default", *names])
    assert [known.identify(token).name for token in tokens] == names
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: remove_token(path, name), names))
    assert list_tokens(path) == (Principal("default", Role.FULL),)


def test_a_directory_that_stays_locked_is_told_in_words(path, monkeypatch):
    monkeypatch.setattr(token_storage, "TOKEN_EDIT_WAIT_SECONDS", 0.0)
    with (
        token_storage.editing(path),
        pytest.raises(ConfigError, match="another command changes tokens"),
    ):
        add_token(path, Role.READ, "viewer")
    add_token(path, Role.READ, "viewer")
