"""The modes of every file that the product makes, whatever the umask."""

from __future__ import annotations

import stat
import subprocess

import pytest

from flue_grpc.security.roles import Role
from flue_grpc.security.token_edit import add_token
from tests.wire.security.contract_calls import RPCS, prepare
from tests.wire.security.process import PROGRAM, running

LISTEN = ["--listen", "127.0.0.1:0", "--listen", "unix:{directory}/run/s"]


def kind_and_mode(path):
    status = path.lstat()
    return stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)


def made(product):
    """Everything below the directories that are the product's own."""
    for part in ("data", "run", "config"):
        top = product.directory / part
        if top.exists():
            yield top
            yield from top.rglob("*")


def assert_private(product):
    wanted = {stat.S_IFDIR: 0o700, stat.S_IFREG: 0o600, stat.S_IFSOCK: 0o600}
    found = {path: kind_and_mode(path) for path in made(product)}
    wrong = {str(p): oct(mode) for p, (kind, mode) in found.items() if mode != wanted[kind]}
    assert wrong == {}
    return {path.name for path in found}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_all_that_a_server_makes_is_its_owners_alone(umask):
    with running(*LISTEN, umask=umask) as product:
        with product.channel() as channel:
            prepare(channel)
            for rpc in RPCS:
                rpc.attempt(channel, rpc.request())
            add_token(product.tokens, Role.READ, "viewer")
            names = assert_private(product)
        assert {"store.db", "store.db-wal", "store.db-shm", "tokens", "s", "s.lock"} <= names
        assert any(name.endswith(".lock") for name in names)
        assert product.stop() == 0
        assert_private(product)


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_a_backup_is_its_owners_alone(umask):
    with running() as product:
        with product.channel() as channel:
            prepare(channel)
        backup = product.directory / "backup.db"
        subprocess.run(
            [PROGRAM, "backup", "--data-dir", product.data, backup],
            umask=umask,
            check=True,
            capture_output=True,
        )
        assert kind_and_mode(backup) == (stat.S_IFREG, 0o600)


def test_a_directory_that_others_may_write_in_is_refused(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o777)
    done = subprocess.run(
        [PROGRAM, "serve", "--home", tmp_path, "--data-dir", data],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert f"others may write in {data}" in done.stderr
    assert list(data.iterdir()) == []
