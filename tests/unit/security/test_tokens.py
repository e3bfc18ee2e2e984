from __future__ import annotations

import ast
import hmac
import inspect
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from flue_grpc.errors import ConfigError
from flue_grpc.limits import TOKEN_FILE_BYTES
from flue_grpc.security import tokens
from flue_grpc.security.roles import Principal, Role
from flue_grpc.security.tokens import TokenFile, TokenSet

FULL = "full-full-full-full-full-full"
READ = "read-read-read-read-read-read"


class Problems(list):
    def __call__(self, text):
        self.append(text)


@pytest.fixture
def problems():
    return Problems()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tokens"


def next_descriptor():
    """The lowest number that is free: each descriptor that leaks takes it."""
    descriptor = os.open(os.devnull, os.O_RDONLY)
    os.close(descriptor)
    return descriptor


def write(path, *lines, mode=0o600):
    """Replace the file as an editor does: under another name, then renamed."""
    new = path.with_name("new")
    new.write_text("".join(f"{line}\n" for line in lines))
    new.chmod(mode)
    new.rename(path)


def test_the_first_start_makes_a_private_file_with_one_full_token(path):
    tokens.create_token_file(path)
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    role, token, name = lines[0].split()
    assert (len(lines), role, name, len(token)) == (1, "full", "default", 43)
    assert tokens.read_token_file(path).identify(token) == Principal("default", Role.FULL)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_the_file_is_0600_under_any_umask(path, umask):
    before = os.umask(umask)
    try:
        tokens.create_token_file(path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o7777 == 0o600


def test_an_existing_file_is_left_alone(path):
    write(path, f"read {READ} viewer")
    before = path.read_bytes()
    tokens.create_token_file(path)
    assert path.read_bytes() == before


def test_two_files_never_hold_the_same_token(tmp_path):
    made = []
    for name in "ab":
        tokens.create_token_file(tmp_path / name)
        made.append((tmp_path / name).read_text().split()[-2])
    assert made[0] != made[1]


def test_a_missing_directory_is_made_private(tmp_path):
    tokens.create_token_file(tmp_path / "missing" / "tokens")
    assert (tmp_path / "missing").stat().st_mode & 0o7777 == 0o700


def test_a_directory_that_others_can_write_in_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(ConfigError, match="others may write"):
        tokens.create_token_file(tmp_path / "tokens")


def test_a_name_that_cannot_be_taken_is_told_in_words(tmp_path):
    (tmp_path / "tokens").symlink_to(tmp_path / "missing" / "elsewhere")
    tokens.create_token_file(tmp_path / "tokens")
    with pytest.raises(ConfigError, match="cannot read the token file"):
        tokens.read_token_file(tmp_path / "tokens")


def test_each_token_has_its_own_role_and_name(path, problems):
    write(path, "# rotation", "", f"full {FULL} agent-2025", f"  read\t{READ}  viewer")
    file = TokenFile(path, problems)
    assert file.identify(FULL) == Principal("agent-2025", Role.FULL)
    assert file.identify(READ) == Principal("viewer", Role.READ)
    assert problems == []


@pytest.mark.parametrize(
    "presented",
    ["", " ", FULL[:-1], FULL + "x", FULL.upper(), f" {FULL}", f"{FULL} ", "\x00", "é", "\udc80"],
)
def test_anything_but_a_whole_token_is_nobody(path, problems, presented):
    write(path, f"full {FULL} agent")
    assert TokenFile(path, problems).identify(presented) is None


@pytest.mark.parametrize(
    "line",
    [
        f"admin {FULL} agent",
        f"FULL {FULL} agent",
        f"full {FULL}",
        f"full {FULL} agent laptop",
        "full too-short agent",
        f"full {FULL}\x07 agent",
        f"full {FULL} a\x1bgent",
        FULL,
    ],
)
def test_a_line_of_bad_form_is_no_token_and_is_reported_by_number_alone(path, problems, line):
    write(path, f"read {READ} viewer", line)
    file = TokenFile(path, problems)
    assert file.identify(FULL) is None
    assert file.identify(READ) == Principal("viewer", Role.READ)
    assert problems == ["line 2 of the token file is not ROLE TOKEN NAME"]


def test_rotation_takes_hold_at_the_next_call(path, problems):
    write(path, f"full {FULL} old")
    file = TokenFile(path, problems)
    write(path, f"full {FULL} old", f"full {READ} new")
    assert (file.identify(FULL), file.identify(READ)) == (
        Principal("old", Role.FULL),
        Principal("new", Role.FULL),
    )
    write(path, f"full {READ} new")
    assert (file.identify(FULL), file.identify(READ)) == (None, Principal("new", Role.FULL))
    assert problems == []


def test_an_unchanged_file_is_not_read_again(path, problems, monkeypatch):
    write(path, f"full {FULL} agent")
    file = TokenFile(path, problems)
    monkeypatch.setattr(tokens, "read_token_file", None)
    assert file.identify(FULL) == Principal("agent", Role.FULL)


SPOILS = ["unlink", "open to others", "not ASCII", "too large", "fifo", "directory"]


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_file_that_cannot_be_used_any_more_refuses_every_token(path, problems, spoil):
    write(path, f"full {FULL} agent")
    file = TokenFile(path, problems)
    if spoil == "unlink":
        path.unlink()
    elif spoil == "open to others":
        path.chmod(0o604)
    elif spoil == "not ASCII":
        write(path, f"full {FULL} agent", "é")
    elif spoil == "too large":
        write(path, f"full {FULL} agent", "#" * TOKEN_FILE_BYTES)
    elif spoil == "fifo":
        path.unlink()
        os.mkfifo(path, 0o600)
    else:
        path.unlink()
        path.mkdir(0o700)
    before = next_descriptor()
    assert [file.identify(FULL) for _ in range(20)] == [None] * 20
    assert next_descriptor() == before
    assert problems == ["the token file cannot be used any more: every token is refused"]
    path.rmdir() if spoil == "directory" else path.unlink(missing_ok=True)
    write(path, f"full {FULL} agent")
    assert file.identify(FULL) == Principal("agent", Role.FULL)


def test_a_file_that_could_not_be_opened_for_a_moment_is_tried_again(path, problems, monkeypatch):
    write(path, f"full {FULL} agent")
    file = TokenFile(path, problems)
    write(path, f"full {FULL} agent", "# changed")

    def fail(*_):
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", fail)
        assert (file.identify(FULL), file.identify(FULL)) == (None, None)
    assert file.identify(FULL) == Principal("agent", Role.FULL)
    assert problems == ["the token file cannot be used any more: every token is refused"]


def test_many_calls_at_once_tell_of_a_change_once(path, problems):
    write(path, f"full {FULL} agent")
    file = TokenFile(path, problems)
    path.unlink()
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(file.identify, [FULL] * 200)) == {None}
    assert len(problems) == 1


def test_a_directory_in_its_place_is_told_at_the_start_and_leaks_nothing(path, problems):
    path.mkdir(0o700)
    before = next_descriptor()
    for _ in range(3):
        with pytest.raises(ConfigError, match=f"the token file {path} is not a regular file"):
            TokenFile(path, problems)
    assert next_descriptor() == before


@pytest.mark.parametrize("mode", [0o604, 0o620, 0o644, 0o666, 0o601])
def test_a_file_that_others_can_read_or_change_is_refused_at_the_start(path, problems, mode):
    write(path, f"full {FULL} agent", mode=mode)
    with pytest.raises(ConfigError, match=f"mode {mode:04o}"):
        TokenFile(path, problems)


@pytest.mark.parametrize("mode", [0o400, 0o440, 0o600, 0o640])
def test_a_file_that_a_group_may_read_is_a_mounted_secret(path, problems, mode):
    write(path, f"full {FULL} agent", mode=mode)
    assert TokenFile(path, problems).identify(FULL) == Principal("agent", Role.FULL)


def test_a_file_of_another_user_is_refused(path, problems, monkeypatch):
    write(path, f"full {FULL} agent")
    owner = path.stat().st_uid
    os.chown(path, 12345, -1) if owner == 0 else pytest.skip("needs root to give a file away")
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(ConfigError, match="belongs to user 12345"):
        TokenFile(path, problems)


def test_a_file_without_a_token_is_refused_at_the_start(path, problems):
    write(path, "# nothing yet")
    with pytest.raises(ConfigError, match="has no token"):
        TokenFile(path, problems)


def test_every_token_is_compared_in_constant_time_whichever_matches(monkeypatch):
    lines = [f"full {letter * 30} {letter}" for letter in "abcde"]
    known = tokens.parse("\n".join(lines))
    compared = []

    def compare(left, right):
        compared.append((left, right))
        return hmac_compare(left, right)

    hmac_compare = hmac.compare_digest
    monkeypatch.setattr(tokens.hmac, "compare_digest", compare)
    for presented in ("a" * 30, "e" * 30, "none of them"):
        compared.clear()
        known.identify(presented)
        # Digests of one length: neither length nor common prefix of a token shows.
        assert [len(left) + len(right) for left, right in compared] == [64] * 5


def test_the_set_of_tokens_is_only_ever_walked_whole():
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(TokenSet.identify)))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Compare | ast.Break)]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Subscript)]


SECRET = re.compile(r"token|presented|digest|secret|bearer|credential", re.IGNORECASE)
BY_VALUE = ast.Eq | ast.NotEq | ast.In | ast.NotIn
LOOKING = {"get", "index", "count", "find", "startswith", "endswith", "setdefault", "pop"}


def finds_by_value(node):
    """Say whether code compares or looks up something whose name is that of a secret."""
    if isinstance(node, ast.Compare):
        return any(isinstance(op, BY_VALUE) for op in node.ops)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in LOOKING
    return isinstance(node, ast.Subscript | ast.match_case)


def comparisons(source):
    """Every comparison, look-up and match of what may be a secret, as it is written."""
    return {
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if finds_by_value(node) and SECRET.search(ast.unparse(node))
    }


def test_a_token_is_compared_nowhere_else():
    """In all that knows of tokens there are names that are compared, and types, and no more."""
    found = set()
    for module in Path(tokens.__file__).parent.glob("*.py"):
        found |= comparisons(module.read_text())
    assert found == {"token.principal.name == name", "list[Token]", "tuple[Token, ...]"}


@pytest.mark.parametrize(
    "line",
    [
        "token == given",
        "presented in known",
        "known[presented]",
        "known.get(digest(given))",
        "given.startswith(token)",
    ],
)
def test_another_comparison_would_be_seen(line):
    assert comparisons(line) == {line}


def test_the_token_itself_is_not_kept_and_does_not_print(path, problems):
    write(path, f"full {FULL} agent")
    file = TokenFile(path, problems)
    assert FULL not in repr(vars(file))
    assert FULL not in repr(tokens.read_token_file(Path(path)))
