from __future__ import annotations

import os
import stat
import threading

import pytest

from flue_grpc.commands.output_file import output_file


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


def test_a_new_file_is_its_owners_alone_and_comes_whole(tmp_path, umask):
    path = tmp_path / "out"
    with output_file(path) as file:
        file.write(b"one ")
        file.flush()
        assert not path.exists()
        file.write(b"two")
    assert path.read_bytes() == b"one two"
    assert mode_of(path) == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("before", [None, b"what was there"])
def test_a_block_that_fails_leaves_what_was_there(tmp_path, before):
    path = tmp_path / "out"
    if before is not None:
        path.write_bytes(before)

    def fail():
        with output_file(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [p.read_bytes() for p in tmp_path.iterdir()] == ([] if before is None else [before])


def test_a_file_that_is_replaced_keeps_its_mode_and_its_links(tmp_path):
    path, link = tmp_path / "out", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to("out")
    with output_file(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert (path.read_bytes(), mode_of(path)) == (b"new", 0o640)


def test_a_pipe_is_written_to_as_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    taken = []
    reader = threading.Thread(target=lambda: taken.append(pipe.read_bytes()))
    reader.start()
    with output_file(pipe) as file:
        file.write(b"through")
    reader.join(20)
    assert taken == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_standard_output_is_flushed(capfdbinary):
    with output_file(None) as file:
        file.write(b"bytes\xff")
    assert capfdbinary.readouterr().out == b"bytes\xff"


def test_where_nothing_can_be_made_it_says_so(tmp_path):
    with pytest.raises(FileNotFoundError), output_file(tmp_path / "none" / "out"):
        pass


def test_links_in_a_circle_are_told_and_left(tmp_path):
    path, other = tmp_path / "out", tmp_path / "other"
    path.symlink_to(other)
    other.symlink_to(path)
    with pytest.raises(OSError, match="Too many levels of symbolic links") as raised:
        output_file(path).__enter__()
    assert raised.value.filename == str(path)
    assert path.is_symlink()
    assert sorted(tmp_path.iterdir()) == [other, path]
