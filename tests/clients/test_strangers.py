"""Commands hand nothing to what another user of this machine has put in a server's place."""

from __future__ import annotations

import os
import socket

import pytest

from flue_grpc.cli import main
from flue_grpc.client import connect
from flue_grpc.commands import connection
from flue_grpc.errors import ConfigError
from flue_grpc.private_files import OwnerLock, announce

only_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can make the file of another user"
)

LIST = ["memory", "list", "--scope", "x"]


class Stranger:
    """Listens where a server might, and says whether anybody came."""

    def __init__(self, listener):
        self._listener = listener
        listener.setblocking(False)

    @property
    def is_met(self):
        try:
            self._listener.accept()[0].close()
        except BlockingIOError:
            return False
        return True


@pytest.fixture
def stranger():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stranger = Stranger(listener)
        stranger.address = f"127.0.0.1:{listener.getsockname()[1]}"
        yield stranger


@pytest.fixture
def configured(stranger, monkeypatch):
    monkeypatch.setenv("FLUE_GRPC_LISTEN", stranger.address)
    return stranger


@pytest.fixture
def give_away(monkeypatch):
    """Give what is there to another user: root can, and anybody else becomes another."""

    def give(path):
        if os.geteuid() == 0:
            os.chown(path, 12_345, -1)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: 12_345)

    return give


@pytest.fixture
def data(base, serving):
    """A data directory that has tokens, because a server with a port was there."""
    with serving("127.0.0.1:0"):
        assert (base / "data/tokens").exists()
    return ["--data-dir", str(base / "data")]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(connection, "_OWNER_SECONDS", 0.0)


def test_a_configured_port_without_a_server_of_ours_gets_no_token(configured, data, capfd):
    assert main([*LIST, *data]) == 1
    assert not configured.is_met
    assert capfd.readouterr() == ("", "")


def test_a_configured_port_that_our_server_does_not_announce_gets_no_token(
    configured, base, serving, data, capfd
):
    with serving(f"unix:{base}/elsewhere") as server:
        server.announce()
        assert main(["memory", "add", "ours", "--scope", "x", *data]) == 0
    assert not configured.is_met
    assert main([*LIST, *data]) == 0
    assert "ours" in capfd.readouterr().out


@only_root
def test_the_lock_of_another_user_announces_nothing(stranger, base, data, give_away, capfd):
    lock = base / "data" / "lock"
    with OwnerLock(lock):
        announce(lock, (stranger.address,))
        give_away(lock)
        assert main([*LIST, *data]) == 2
    assert not stranger.is_met
    assert f"locked by process {os.getpid()}" in capfd.readouterr().err


@pytest.fixture
def socket_of_another(base, give_away, monkeypatch):
    """The default socket, in a directory where everybody may write as in /tmp."""
    path = base / "flue-grpc" / "flue.sock"
    path.parent.mkdir()
    path.parent.chmod(0o1777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(base))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        give_away(path)
        yield Stranger(listener)


@only_root
def test_the_default_socket_of_another_user_is_passed_over(socket_of_another, capfd):
    assert main(LIST) == 1
    assert not socket_of_another.is_met
    assert capfd.readouterr() == ("", "")


def test_connect_refuses_the_default_socket_of_another_user(socket_of_another):
    with pytest.raises(ConfigError, match="belongs to user"):
        connect()
    assert not socket_of_another.is_met


@only_root
def test_a_named_socket_is_the_word_of_its_user(base, serving, give_away, capfd):
    with serving():
        give_away(base / "s")
        assert main([*LIST, "--server", f"unix:{base}/s"]) == 1
    assert capfd.readouterr().err == ""
