from __future__ import annotations

import errno
import fcntl
import os
import socket
import subprocess
import sys
import threading

import pytest

from flue_grpc import private_files
from flue_grpc.errors import AlreadyRunningError, ConfigError


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777])
def umask(request, tmp_path):
    assert tmp_path.is_dir()  # made before, or nobody but root could use it
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path):
    return path.stat().st_mode & 0o7777


@pytest.mark.usefixtures("umask")
def test_missing_directories_are_made_0700_under_any_umask(tmp_path):
    private_files.make_private_directory(tmp_path / "a" / "b")
    assert (mode(tmp_path / "a"), mode(tmp_path / "a" / "b")) == (0o700, 0o700)


@pytest.mark.parametrize("bits", [0o700, 0o755, 0o500, 0o1777])
def test_a_safe_existing_directory_is_never_changed(tmp_path, bits):
    path = tmp_path / "there"
    path.mkdir()
    path.chmod(bits)
    private_files.make_private_directory(path)
    assert mode(path) == bits


@pytest.mark.parametrize("bits", [0o777, 0o770, 0o702])
def test_a_directory_in_which_others_may_write_is_refused(tmp_path, bits):
    path = tmp_path / "open"
    path.mkdir()
    path.chmod(bits)
    with pytest.raises(ConfigError, match=f"others may write in .*open \\(mode 0{bits:o}\\)"):
        private_files.make_private_directory(path)
    assert mode(path) == bits


def test_a_directory_of_another_user_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    status = os.stat_result((0o040755, 0, 0, 0, 54321, 0, 0, 0, 0, 0))
    with pytest.raises(ConfigError, match="belongs to user 54321"):
        private_files.refuse_unsafe_directory(tmp_path, status)


def test_a_file_that_cannot_be_made_private_leaves_no_file_and_no_descriptor(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchmod", fail)
    before = next_descriptor()
    for make in (private_files.create_private_file, private_files.OwnerLock):
        with pytest.raises((OSError, ConfigError)):
            make(tmp_path / make.__name__)
    assert next_descriptor() == before
    assert not (tmp_path / "create_private_file").exists()


def next_descriptor():
    """The lowest number that is free: each descriptor that leaks takes it."""
    descriptor = os.open(os.devnull, os.O_RDONLY)
    os.close(descriptor)
    return descriptor


@pytest.mark.parametrize("below", ["file", "file/below"])
def test_a_file_where_a_directory_should_be_is_refused(tmp_path, below):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="file"):
        private_files.make_private_directory(tmp_path / below)


@pytest.mark.usefixtures("umask")
def test_created_files_are_0600_under_any_umask(tmp_path):
    os.close(private_files.create_private_file(tmp_path / "f"))
    assert mode(tmp_path / "f") == 0o600


@pytest.mark.parametrize("kind", ["file", "symlink"])
def test_a_taken_name_is_never_opened(tmp_path, kind):
    path = tmp_path / "f"
    if kind == "file":
        path.write_text("kept")
    else:
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        private_files.create_private_file(path)
    assert not (tmp_path / "elsewhere").exists()


def test_tighten_changes_the_mode_and_ignores_what_is_missing(tmp_path):
    path = tmp_path / "f"
    path.write_text("x")
    path.chmod(0o666)
    private_files.tighten(path)
    private_files.tighten(tmp_path / "missing")
    assert mode(path) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["f"]


@pytest.mark.usefixtures("umask")
def test_a_lock_has_one_owner_and_names_it(tmp_path):
    path = tmp_path / "lock"
    with private_files.OwnerLock(path):
        assert path.read_text() == f"{os.getpid()}\n"
        assert mode(path) == 0o600
        with pytest.raises(AlreadyRunningError, match=f"lock is locked by process {os.getpid()};"):
            private_files.OwnerLock(path)
    assert path.read_text() == ""
    private_files.OwnerLock(path).release()


def test_releasing_twice_leaves_the_next_owner_alone(tmp_path):
    path = tmp_path / "lock"
    first = private_files.OwnerLock(path)
    first.release()
    with private_files.OwnerLock(path):
        first.release()
        assert path.read_text() == f"{os.getpid()}\n"


def test_a_lock_ends_with_its_process_and_is_named_in_another(tmp_path):
    path = tmp_path / "lock"
    code = (
        "import sys, pathlib; from flue_grpc.private_files import OwnerLock\n"
        "lock = OwnerLock(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout.readline() == b"held\n"
        with pytest.raises(AlreadyRunningError, match=f"process {owner.pid};"):
            private_files.OwnerLock(path)
        owner.kill()
        owner.wait()
        private_files.OwnerLock(path).release()


def test_a_child_that_a_killed_owner_was_starting_only_delays_the_next_one(tmp_path, monkeypatch):
    """Between fork and exec it has the lock's descriptor, and nobody who could stop it."""
    path = tmp_path / "lock"
    private_files.OwnerLock(path).release()
    inherited = os.open(path, os.O_RDWR)
    fcntl.flock(inherited, fcntl.LOCK_EX)
    monkeypatch.setattr(private_files.time, "sleep", lambda _: os.close(inherited))
    with private_files.OwnerLock(path):
        assert path.read_text() == f"{os.getpid()}\n"


def test_an_owner_that_has_not_written_its_id_is_another_process(tmp_path):
    path = tmp_path / "lock"
    with private_files.OwnerLock(path):
        path.write_text("")
        with pytest.raises(AlreadyRunningError, match="locked by another process"):
            private_files.OwnerLock(path)


@pytest.mark.parametrize("kind", ["directory", "symlink", "fifo"])
def test_a_lock_that_is_no_plain_file_is_refused_without_blocking(tmp_path, kind):
    path = tmp_path / "lock"
    if kind == "directory":
        path.mkdir()
    elif kind == "symlink":
        path.symlink_to(tmp_path / "elsewhere")
    else:
        os.mkfifo(path)
    with pytest.raises(ConfigError, match="cannot lock"):
        private_files.OwnerLock(path)
    assert not (tmp_path / "elsewhere").exists()


def test_only_one_of_many_contenders_gets_the_lock(tmp_path):
    outcomes = []
    barrier = threading.Barrier(8)

    def contend():
        barrier.wait()
        try:
            outcomes.append(private_files.OwnerLock(tmp_path / "lock"))
        except AlreadyRunningError:
            outcomes.append(None)

    threads = [threading.Thread(target=contend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [lock for lock in outcomes if lock]
    winner.release()


def test_a_lock_tells_where_its_owner_listens(tmp_path):
    path = tmp_path / "lock"
    assert private_files.holder_of(path) is None
    with private_files.OwnerLock(path):
        assert private_files.holder_of(path) == private_files.Holder(f"process {os.getpid()}")
        private_files.announce(path, ("unix:/run/a b", "127.0.0.1:7", "unix:/two\nlines"))
        holder = private_files.holder_of(path)
        assert holder.addresses == ("unix:/run/a b", "127.0.0.1:7")
        assert str(holder) == (
            f"process {os.getpid()}, the server at unix:/run/a b and 127.0.0.1:7"
        )
        assert mode(path) == 0o600
    assert path.read_text() == ""
    assert private_files.holder_of(path) is None


def test_nothing_is_announced_in_the_lock_of_another(tmp_path):
    path = tmp_path / "lock"
    path.write_text("1\n")
    private_files.announce(path, ("unix:/run/s",))
    private_files.announce(tmp_path / "missing", ("unix:/run/s",))
    assert path.read_text() == "1\n"
    assert not (tmp_path / "missing").exists()


@pytest.fixture
def strange(monkeypatch):
    """Give what is there to another user: root can, and anybody else becomes another."""

    def give(path):
        if os.geteuid() == 0:
            os.chown(path, 12_345, -1, follow_symlinks=False)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: 12_345)

    return give


@pytest.mark.parametrize("writable", [0o777, 0o770])
def test_what_others_may_have_written_into_a_lock_is_no_address(tmp_path, strange, writable):
    path = tmp_path / "data" / "lock"
    path.parent.mkdir(mode=0o700)
    with private_files.OwnerLock(path):
        private_files.announce(path, ("127.0.0.1:7",))
        path.parent.chmod(writable)
        assert private_files.holder_of(path) == private_files.Holder(f"process {os.getpid()}")
        path.parent.chmod(0o700)
        assert private_files.holder_of(path).addresses == ("127.0.0.1:7",)
        strange(path)
        assert private_files.holder_of(path) == private_files.Holder(f"process {os.getpid()}")


def test_a_lock_in_the_directory_of_another_user_tells_no_address(tmp_path, monkeypatch):
    path = tmp_path / "data" / "lock"
    path.parent.mkdir(mode=0o700)
    with private_files.OwnerLock(path):
        private_files.announce(path, ("127.0.0.1:7",))
        directory = path.parent.stat()
        monkeypatch.setattr(os, "geteuid", lambda: 12_345)
        # A lock of root's would do; the directory of a third user does not.
        third = os.stat_result((*directory[:4], 54_321, *directory[5:]))
        plain = type(path).stat
        monkeypatch.setattr(
            type(path), "stat", lambda p, **k: third if p == path.parent else plain(p, **k)
        )
        assert private_files.holder_of(path).addresses == ()


@pytest.fixture
def bound(tmp_path):
    path = tmp_path / "run" / "s"
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        yield path


def test_a_socket_of_ones_own_or_none_is_not_strange(bound):
    private_files.refuse_strange_socket(bound)
    private_files.refuse_strange_socket(bound.with_name("missing"))
    private_files.refuse_strange_socket(bound.parent / "missing" / "s")


def test_a_socket_of_another_user_is_refused(bound, strange):
    strange(bound)
    with pytest.raises(ConfigError, match="belongs to user"):
        private_files.refuse_strange_socket(bound)


def test_a_link_of_another_user_to_a_socket_is_refused(bound, strange):
    link = bound.with_name("link")
    link.symlink_to(bound)
    private_files.refuse_strange_socket(link)
    strange(link)
    with pytest.raises(ConfigError, match="belongs to user"):
        private_files.refuse_strange_socket(link)


def test_a_socket_that_others_may_replace_is_refused(bound):
    bound.parent.chmod(0o777)
    with pytest.raises(ConfigError, match="others may write in"):
        private_files.refuse_strange_socket(bound)
    bound.parent.chmod(0o1777)
    private_files.refuse_strange_socket(bound)
    with pytest.raises(ConfigError, match="cannot look at"):
        private_files.refuse_strange_socket(bound / "below")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_takes_nothing_keeps_no_lock_from_its_owner(tmp_path, monkeypatch, code):
    def refused(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "pwrite", refused)
    monkeypatch.setattr(os, "ftruncate", refused)
    for _ in range(2):
        lock = private_files.OwnerLock(tmp_path / "lock")
        with pytest.raises(AlreadyRunningError):
            private_files.OwnerLock(tmp_path / "lock")
        lock.release()
