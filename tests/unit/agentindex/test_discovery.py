"""Which files are transcripts (behaviour B2, formats §1.8 and §6 rows 28, 31-33, 35)."""

from __future__ import annotations

import os
import socket

import pytest

from flue_grpc.agentindex.discovery import discover, judge, real_roots
from flue_grpc.agentindex.parsing import Trail
from flue_grpc.agentindex.records import FileKey, Place, Record, Standing
from tests.unit.agentindex.logs import Home, Logs


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path.resolve())


def walk(home, known=None):
    return discover(home.roots, known or {})


def names(home, found):
    return sorted(os.path.relpath(file.path, home.path) for file in found.dirty)


def remember(found):
    known = {}
    for file in found.dirty:
        standing = Standing(0, b"", False, Trail(), 0)
        record = Record(file.source, file.key, standing, None)
        known.setdefault(file.place, {})[file.path] = record
    return known


def test_files_are_found_with_what_their_names_tell(home):
    path = home.write("logs/a/x~s.jsonl", b"{}")
    (found,) = walk(home).dirty
    status = path.stat()
    assert found.path == str(path)
    assert found.place == Place("logs", "logs", str(home.path / "logs"))
    assert (found.source.id, found.source.parent_id, found.source.folder) == ("x~s", "x", "a")
    assert found.key == FileKey(3, status.st_mtime_ns, status.st_ino, status.st_mode)


def test_missing_directories_are_no_error(home):
    (home.path / "logs").rmdir()
    (home.path / "old").rmdir()
    assert walk(home).dirty == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_cannot_be_read_holds_nothing(home):
    home.write("logs/a/x.jsonl")
    home.write("logs/b/y.jsonl")
    (home.path / "logs/a").chmod(0)
    assert names(home, walk(home)) == ["logs/b/y.jsonl"]


def test_a_root_that_is_a_file_holds_nothing(home):
    (home.path / "old").rmdir()
    (home.path / "old").write_bytes(b"")
    assert walk(home).dirty == []


def test_hidden_temporary_and_foreign_names_are_left_out(home):
    for name in (".x.jsonl", "x.jsonl~", "x.jsonl.tmp", "x.txt", "jsonl", "private/x.jsonl"):
        home.write(f"logs/a/{name}")
    home.write("logs/.hidden/x.jsonl")
    assert walk(home).dirty == []


def test_names_that_are_not_utf8_are_skipped(home):
    home.write("logs/a/fine-é-数.jsonl")
    for name in (b"logs/a/\xff.jsonl", b"logs/\xfe/x.jsonl"):
        home.write(os.fsdecode(name))
    assert names(home, walk(home)) == ["logs/a/fine-é-数.jsonl"]


def test_a_home_whose_name_is_not_utf8_is_walked(tmp_path):
    home = Home(tmp_path / os.fsdecode(b"\xff"))
    home.write("logs/a/x.jsonl")
    assert names(home, walk(home)) == ["logs/a/x.jsonl"]


def test_what_is_no_regular_file_is_left_out(home, monkeypatch):
    (home.path / "logs/a/d.jsonl").mkdir(parents=True)
    os.mkfifo(home.path / "logs/a/f.jsonl")
    monkeypatch.chdir(home.path / "logs/a")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s.jsonl")
    assert walk(home).dirty == []


class TestLinks:
    def test_a_root_may_be_one(self, home):
        (home.path / "logs").rename(home.path / "real")
        (home.path / "logs").symlink_to("real")
        home.write("real/a/x.jsonl")
        (found,) = walk(home).dirty
        assert found.path == str(home.path / "real/a/x.jsonl")
        assert found.place.root == str(home.path / "real")

    def test_roots_that_are_one_directory_are_walked_once(self, home):
        (home.path / "old").rmdir()
        (home.path / "old").symlink_to("logs")
        home.write("logs/a/x.jsonl")
        assert [found.place.kind for found in walk(home).dirty] == ["logs"]

    def test_a_root_inside_another_is_walked_once(self, home):
        (home.path / "old").rmdir()
        home.write("logs/inner/x.jsonl")
        (home.path / "old").symlink_to("logs/inner")
        assert names(home, walk(home)) == ["logs/inner/x.jsonl"]

    def test_directories_below_a_root_are_not_followed(self, home):
        home.write("elsewhere/x.jsonl")
        home.write("logs/a/y.jsonl")
        (home.path / "logs/link").symlink_to(home.path / "elsewhere")
        (home.path / "logs/a/loop").symlink_to(home.path / "logs")
        assert names(home, walk(home)) == ["logs/a/y.jsonl"]

    def test_a_file_counts_when_its_target_lies_in_a_root(self, home):
        target = home.write("old/b/data.bin")
        home.write("logs/a/.keep")
        (home.path / "logs/a/x.jsonl").symlink_to(target)
        (found,) = walk(home).dirty
        assert (found.path, found.source.id) == (str(target), "x")
        assert found.place == Place("logs", "logs", str(home.path / "old"), is_linked=True)

    @pytest.mark.parametrize("target", ["elsewhere/x.jsonl", "logs", "gone", "logs2/x.jsonl"])
    def test_a_file_does_not_count_otherwise(self, home, target):
        home.write("elsewhere/x.jsonl")
        home.write("logs2/x.jsonl")
        home.write("logs/a/.keep")
        (home.path / "logs/a/x.jsonl").symlink_to(home.path / target)
        assert walk(home).dirty == []

    def test_a_link_to_a_fifo_or_device_does_not_count(self, home):
        home.write("logs/a/.keep")
        os.mkfifo(home.path / "logs/a/pipe")
        (home.path / "logs/a/x.jsonl").symlink_to("pipe")
        (home.path / "logs/a/y.jsonl").symlink_to("/dev/zero")
        (home.path / "logs/a/z.jsonl").symlink_to("z.jsonl")
        assert walk(home).dirty == []

    def test_one_file_under_several_names_counts_once_by_its_own(self, home):
        home.write("logs/a/b.jsonl")
        (home.path / "logs/a/a.jsonl").symlink_to("b.jsonl")
        (home.path / "old/c.jsonl").symlink_to(home.path / "logs/a/b.jsonl")
        (found,) = walk(home).dirty
        assert found.source.id == "b"

    def test_of_two_links_the_first_by_path_counts(self, home):
        home.write("logs/a/data.bin")
        for name in ("y", "x"):
            (home.path / f"logs/a/{name}.jsonl").symlink_to("data.bin")
        (found,) = walk(home).dirty
        assert found.source.id == "x"

    def test_an_unchanged_one_is_not_dirty_a_renamed_one_is(self, home):
        home.write("logs/a/data.bin")
        link = home.path / "logs/a/x.jsonl"
        link.symlink_to("data.bin")
        known = remember(walk(home))
        assert walk(home, known).dirty == []
        link.rename(home.path / "logs/a/y.jsonl")
        assert [found.source.id for found in walk(home, known).dirty] == ["y"]


class TestKnownFiles:
    @pytest.fixture
    def path(self, home):
        return home.write("logs/a/x.jsonl", b"{}")

    def test_an_unchanged_one_is_not_dirty(self, home, path):
        found = walk(home, remember(walk(home)))
        assert (found.dirty, found.paths) == ([], {str(path)})

    @pytest.mark.parametrize("change", ["size", "time", "inode", "mode"])
    def test_a_changed_one_is(self, home, path, change):
        known = remember(walk(home))
        status = path.stat()
        if change == "size":
            home.append("logs/a/x.jsonl", b"{}")
        elif change == "inode":
            other = home.write("logs/a/new", b"{}")
            other.rename(path)
        elif change == "mode":
            path.chmod(0o400)
        if change != "time":
            os.utime(path, ns=(0, status.st_mtime_ns))
        else:
            os.utime(path, ns=(0, status.st_mtime_ns + 1))
        assert names(home, walk(home, known)) == ["logs/a/x.jsonl"]

    def test_nothing_is_opened(self, home, path, monkeypatch):
        def never(*_):
            raise AssertionError("a file was opened")

        monkeypatch.setattr(os, "open", never)
        monkeypatch.setattr("builtins.open", never)
        assert len(walk(home).dirty) == 1


class TestJudge:
    def test_it_agrees_with_a_walk(self, home):
        path = home.write("logs/a/x.jsonl", b"{}")
        assert judge(home.roots, str(path)) == walk(home).dirty[0]

    @pytest.mark.parametrize(
        "name",
        ["logs/a/.x.jsonl", "logs/private/x.jsonl", "logs/.h/x.jsonl", "logs/a/x.txt", "x.jsonl"],
    )
    def test_what_a_walk_leaves_out_is_none(self, home, name):
        path = home.write(name)
        assert judge(home.roots, str(path)) is None

    def test_neither_is_a_link_nor_what_is_gone(self, home):
        target = home.write("logs/a/x.jsonl")
        (home.path / "logs/a/y.jsonl").symlink_to(target)
        (home.path / "logs/b").symlink_to("a")
        for name in ("logs/a/y.jsonl", "logs/b/x.jsonl", "logs/a/gone.jsonl", "logs"):
            assert judge(home.roots, str(home.path / name)) is None
        assert judge(home.roots, f"{home.path}/logs/a/../a/x.jsonl") is None


def test_a_file_that_vanishes_while_it_is_looked_at_is_left_out(home, monkeypatch):
    home.write("logs/a/x.jsonl")

    class Vanishing(Logs):
        def enters(self, root, relative):
            (home.path / "logs/a/x.jsonl").unlink(missing_ok=True)
            return True

    roots = real_roots((Vanishing(),), str(home.path), {})
    assert discover(roots, {}).dirty == []
