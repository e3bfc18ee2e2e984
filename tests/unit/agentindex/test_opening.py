from __future__ import annotations

import os
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.agentindex.opening import open_transcript
from flue_grpc.errors import TranscriptNotFoundError
from flue_grpc.limits import HEAD_BYTES


@pytest.fixture
def root(tmp_path):
    return tmp_path.resolve() / "root"


@pytest.fixture
def write(root):
    root.mkdir()

    def write(data, name="t.jsonl"):
        path = root / name
        path.write_bytes(data)
        return path

    return write


def opened(path, root):
    return open_transcript(str(path), str(root))


def test_what_is_opened_is_described(write, root):
    path = write(b"one\ntwo")
    with opened(path, root) as transcript:
        status = path.stat()
        assert (transcript.size, transcript.mtime_ns) == (7, status.st_mtime_ns)
        assert (transcript.inode, transcript.mode) == (status.st_ino, status.st_mode)
        assert transcript.head == b"one\ntwo"
        assert not os.get_inheritable(transcript.fd)


def test_the_descriptor_is_closed_once(write, root):
    transcript = opened(write(b""), root)
    descriptor = transcript.fd
    transcript.close()
    transcript.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def fifo(path):
    os.mkfifo(path)


def directory(path):
    path.mkdir()


def unix_socket(path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def unreadable(path):
    path.write_bytes(b"{}\n")
    path.chmod(0)


@pytest.mark.parametrize("make", [fifo, directory, unix_socket])
def test_what_is_no_regular_file_is_not_found_and_never_blocks(write, root, make, monkeypatch):
    write(b"")
    monkeypatch.chdir(root)
    make(root / "odd")
    with pytest.raises(TranscriptNotFoundError):
        opened(root / "odd", root)


def test_a_device_is_not_found():
    with pytest.raises(TranscriptNotFoundError):
        open_transcript("/dev/zero", "/dev")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_not_found(write, root):
    unreadable(write(b""))
    with pytest.raises(TranscriptNotFoundError):
        opened(root / "t.jsonl", root)


@pytest.mark.parametrize("path", ["/root/none", "relative.jsonl", "/a\0b"])
def test_a_path_that_cannot_be_is_not_found(root, path):
    with pytest.raises(TranscriptNotFoundError):
        open_transcript(path, str(root))


def test_nothing_outside_the_root_is_opened(write, root, tmp_path):
    write(b"")
    outside = tmp_path.resolve() / "root2"
    outside.mkdir()
    (outside / "t.jsonl").write_bytes(b"secret")
    with pytest.raises(TranscriptNotFoundError):
        opened(outside / "t.jsonl", root)
    with pytest.raises(TranscriptNotFoundError):
        opened(root / ".." / "root2" / "t.jsonl", root)


def test_a_link_put_in_the_place_of_a_file_or_directory_is_not_followed(write, root, tmp_path):
    write(b"")
    outside = tmp_path.resolve() / "outside"
    outside.mkdir()
    (outside / "t.jsonl").write_bytes(b"secret")
    (root / "link.jsonl").symlink_to(outside / "t.jsonl")
    (root / "folder").symlink_to(outside)
    for path in (root / "link.jsonl", root / "folder" / "t.jsonl"):
        with pytest.raises(TranscriptNotFoundError):
            opened(path, root)


def test_without_proc_the_place_is_checked_too(write, root, tmp_path, monkeypatch):
    path = write(b"x")
    outside = tmp_path.resolve() / "outside"
    outside.mkdir()
    (outside / "t.jsonl").write_bytes(b"secret")
    (root / "folder").symlink_to(outside)

    def missing(_path):
        raise FileNotFoundError

    monkeypatch.setattr("os.readlink", missing)
    opened(path, root).close()
    with pytest.raises(TranscriptNotFoundError):
        opened(root / "folder" / "t.jsonl", root)


def test_a_file_replaced_right_after_it_was_opened_is_not_found(write, root, monkeypatch):
    path = write(b"old")
    plain = os.open

    def replacing(name, flags, *more):
        descriptor = plain(name, flags, *more)
        if str(name) == str(path):
            write(b"new", "new.jsonl").rename(path)
        return descriptor

    monkeypatch.setattr(os, "open", replacing)
    with pytest.raises(TranscriptNotFoundError):
        opened(path, root)


def test_no_access_time_is_touched(write, root):
    path = write(b"line\n")
    os.utime(path, ns=(0, 10**18))
    with opened(path, root) as transcript:
        assert os.pread(transcript.fd, 5, 0) == b"line\n"
    assert path.stat().st_atime_ns == 0


def test_a_file_of_somebody_else_is_opened_without_that(write, root, monkeypatch):
    path = write(b"x")
    plain = os.open
    tried = []

    def refusing(name, flags, *more):
        tried.append(flags & os.O_NOATIME)
        if flags & os.O_NOATIME:
            raise PermissionError
        return plain(name, flags, *more)

    monkeypatch.setattr(os, "open", refusing)
    opened(path, root).close()
    assert tried == [os.O_NOATIME, 0]


class TestRevision:
    def revision(self, path, root):
        with opened(path, root) as transcript:
            return transcript.revision

    def accepts(self, path, root, revision):
        with opened(path, root) as transcript:
            return transcript.has_revision(revision)

    def test_an_append_leaves_it(self, write, root):
        path = write(b"first\n")
        before = self.revision(path, root)
        with path.open("ab") as file:
            file.write(b"x" * 10_000)
        assert self.revision(path, root) == before
        assert self.accepts(path, root, before)

    def test_a_first_line_that_was_not_complete_is_still_accepted(self, write, root):
        path = write(b"fir")
        before = self.revision(path, root)
        with path.open("ab") as file:
            file.write(b"st\nsecond\n")
        assert self.accepts(path, root, before)

    def test_another_first_line_changes_it(self, write, root):
        before = self.revision(write(b"first\n"), root)
        path = write(b"other\n")
        assert self.revision(path, root) != before
        assert not self.accepts(path, root, before)

    def test_another_inode_changes_it(self, write, root):
        path = write(b"first\n")
        before = self.revision(path, root)
        copy = write(b"first\n", "copy.jsonl")
        copy.rename(path)
        assert not self.accepts(path, root, before)

    def test_a_file_cut_within_the_first_line_is_another(self, write, root):
        path = write(b"first\n")
        before = self.revision(path, root)
        os.truncate(path, 3)
        assert not self.accepts(path, root, before)

    def test_a_long_first_line_counts_by_its_beginning(self, write, root):
        path = write(b"x" * HEAD_BYTES)
        before = self.revision(path, root)
        with path.open("ab") as file:
            file.write(b"more\n")
        assert self.revision(path, root) == before

    @given(st.text(max_size=40))
    @settings(max_examples=50)
    def test_a_foreign_one_is_never_accepted(self, tmp_path_factory, text):
        root = tmp_path_factory.mktemp("r").resolve()
        path = root / "t.jsonl"
        path.write_bytes(b"first\n")
        assert not self.accepts(path, root, text)
        assert not self.accepts(path, root, "٣-00")
        assert not self.accepts(path, root, "9" * 5000 + "-00")
