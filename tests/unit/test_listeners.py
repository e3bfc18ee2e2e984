from __future__ import annotations

import errno
import os
import shutil
import socket
import stat
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from flue_grpc.errors import AlreadyRunningError, ConfigError
from flue_grpc.limits import MAX_SOCKET_PATH_BYTES
from flue_grpc.listeners import (
    TcpAddress,
    UnixAddress,
    bind,
    lock_socket,
    parse_address,
    removal,
)


@pytest.fixture
def directory():
    """Short, as a socket's path has to be."""
    path = Path(tempfile.mkdtemp(prefix="flue"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def server():
    pool = ThreadPoolExecutor(1)
    server = grpc.server(pool, options=(("grpc.so_reuseport", 0),))
    yield server
    server.stop(None)
    pool.shutdown()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("unix:/run/a", UnixAddress(Path("/run/a"))),
        ("unix:///run/a", UnixAddress(Path("/run/a"))),
        ("127.0.0.1:50051", TcpAddress("127.0.0.1", 50051)),
        ("localhost:0", TcpAddress("localhost", 0)),
        ("[::1]:65535", TcpAddress("::1", 65535)),
    ],
)
def test_addresses(text, address):
    assert parse_address(text) == address


def test_relative_sockets_are_taken_from_here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert parse_address("unix:s") == UnixAddress(tmp_path / "s")


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "localhost",
        "localhost:",
        ":50051",
        "localhost:65536",
        "localhost:-1",
        "localhost:http",
        "::1:50051",
        "[]:1",
        "/run/a",
        "http://localhost:1",
        "unix:",
        "unix:/a\0b",
    ],
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ConfigError):
        parse_address(text)


@pytest.mark.parametrize("text", ["127.0.0.1:99999", "[::1]:65536"])
def test_a_port_out_of_range_is_told(text):
    with pytest.raises(ConfigError) as refused:
        parse_address(text)
    assert str(refused.value) == f"{text!r}: a port is a number from 0 to 65535"


def test_an_abstract_socket_is_refused_with_the_reason():
    with pytest.raises(ConfigError, match="no permissions"):
        parse_address("unix-abstract:flue")


def test_a_path_is_measured_in_bytes_before_the_kernel_cuts_it():
    fits = "/" + "é" * 53
    assert len(os.fsencode(fits)) == 107
    assert parse_address(f"unix:{fits}").path == Path(fits)
    with pytest.raises(ConfigError, match="at most 107 bytes, this one has 108"):
        parse_address(f"unix:{fits}x")


def test_a_comma_at_which_grpc_would_split_the_path_is_refused(monkeypatch, tmp_path):
    with pytest.raises(ConfigError, match="/run/a,b/s: gRPC takes no comma"):
        parse_address("unix:/run/a,b/s")
    (tmp_path / "a,b").mkdir()
    monkeypatch.chdir(tmp_path / "a,b")
    with pytest.raises(ConfigError, match="no comma"):
        parse_address("unix:s")


def test_bytes_that_are_no_text_are_quoted_as_they_are():
    assert parse_address("unix:/run/\udcff#").target == "unix:/run/%FF%23"


def test_a_socket_is_private_from_the_first_moment_under_any_umask(directory, server):
    address = UnixAddress(directory / "deep" / "er" / "s")
    before = os.umask(0)
    try:
        with lock_socket(address):
            assert bind(server, address, None) == address
            assert os.umask(0) == 0
            status = address.path.stat()
            assert stat.S_ISSOCK(status.st_mode)
            assert stat.S_IMODE(status.st_mode) == 0o600
            lock = address.path.with_name("s.lock")
            assert stat.S_IMODE(lock.stat().st_mode) == 0o600
            for made in (address.path.parent, address.path.parent.parent):
                assert stat.S_IMODE(made.stat().st_mode) == 0o700
    finally:
        os.umask(before)


def test_an_existing_directory_is_never_changed(directory):
    directory.chmod(0o755)
    with lock_socket(UnixAddress(directory / "s")):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o755


def test_a_directory_where_others_may_write_is_refused_unless_sticky(directory):
    directory.chmod(0o777)
    with pytest.raises(ConfigError, match="others may write"):
        lock_socket(UnixAddress(directory / "s"))
    assert list(directory.iterdir()) == []
    directory.chmod(0o1777)
    lock_socket(UnixAddress(directory / "s")).release()


def test_one_owner_per_socket(directory):
    address = UnixAddress(directory / "s")
    with lock_socket(address), pytest.raises(AlreadyRunningError, match=r"s\.lock is locked by"):
        lock_socket(address)
    lock_socket(address).release()


def test_something_else_at_the_path_is_left_alone(directory):
    path = directory / "s"
    path.write_text("mine")
    with pytest.raises(ConfigError, match="not a socket"):
        lock_socket(UnixAddress(path))
    assert path.read_text() == "mine"
    path.unlink()
    lock_socket(UnixAddress(path)).release()


def test_a_socket_that_a_killed_server_left_is_taken_over(directory, server):
    path = directory / "s"
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))
    address = UnixAddress(path)
    with lock_socket(address):
        bind(server, address, None)
        server.start()
        with grpc.insecure_channel(address.target) as channel:
            grpc.channel_ready_future(channel).result(20)


def test_a_socket_is_removed_by_whoever_made_it_alone(directory, server):
    address = UnixAddress(directory / "s")
    bind(server, address, None)
    remove = removal(address)
    with socket.socket(socket.AF_UNIX) as another:
        address.path.unlink()
        another.bind(str(address.path))
        server.start()
        server.stop(0).wait()
        remove()
        assert address.path.is_socket()
    removal(address)()
    assert list(directory.iterdir()) == []
    remove()


def test_a_directory_that_cannot_be_written_is_named(directory, server, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(ConfigError, match=f"{directory} cannot be written"):
        bind(server, UnixAddress(directory / "s"), None)


def test_a_name_that_another_user_has_is_told_and_nothing_is_left(directory, server, monkeypatch):
    path = directory / "s"
    with socket.socket(socket.AF_UNIX) as anothers:
        anothers.bind(str(path))

    def refuse(_self, _target):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    # As in a sticky directory.
    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(ConfigError) as refused:
        bind(server, UnixAddress(path), None)
    told = f"cannot make the socket {path}: Operation not permitted; is that name another user's?"
    assert str(refused.value) == told
    assert [entry.name for entry in directory.iterdir()] == ["s"]


def test_a_socket_name_of_the_greatest_length_is_bound(directory, server):
    name = "s" * (MAX_SOCKET_PATH_BYTES - len(os.fsencode(directory)) - 1)
    bind(server, UnixAddress(directory / name), None)
    assert [path.name for path in directory.iterdir()] == [name]


@pytest.mark.parametrize("name", ["a b", "a%20b", "a#b?c", "naïve", "a'b\"c"])
def test_any_name_of_a_socket_is_that_name(directory, server, name):
    address = UnixAddress(directory / name)
    with lock_socket(address):
        bind(server, address, None)
        assert sorted(path.name for path in directory.iterdir()) == [name, f"{name}.lock"]
        server.start()
        with grpc.insecure_channel(address.target) as channel:
            grpc.channel_ready_future(channel).result(20)


def test_a_port_that_is_taken_is_refused(server):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
            bind(server, TcpAddress("127.0.0.1", port), None)


def test_any_free_port_is_told(server):
    bound = bind(server, TcpAddress("127.0.0.1", 0), None)
    assert bound.host == "127.0.0.1"
    assert bound.port > 0


def test_a_second_server_never_shares_a_port(server):
    bound = bind(server, TcpAddress("127.0.0.1", 0), None)
    server.start()
    pool = ThreadPoolExecutor(1)
    second = grpc.server(pool, options=(("grpc.so_reuseport", 0),))
    with pytest.raises(ConfigError, match="in use"):
        bind(second, bound, None)
    pool.shutdown()
