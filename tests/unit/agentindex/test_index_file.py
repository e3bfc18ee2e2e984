"""The index file is a cache: private, rebuilt whenever in doubt, never fatal (behaviour B4)."""

from __future__ import annotations

import os
import threading

import apsw
import pytest

from flue_grpc.agentindex import index_file
from flue_grpc.agentindex.index_file import SchemaPart, open_index_file
from flue_grpc.errors import AlreadyRunningError

PART = SchemaPart("ranked 1", "create table words(word text);")


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "config" / "agents"


@pytest.fixture
def open_file(directory, tmp_path):
    opened = []

    def open_file(home=None, parts=(PART,)):
        opened.append(open_index_file(directory, str(home or tmp_path), parts))
        return opened[-1]

    yield open_file
    for file in opened:
        file.close()


def mode(path):
    return path.stat().st_mode & 0o7777


def put(file):
    with file.writer() as db:
        db.execute("insert into usage values(1, x'00')")


def count(file):
    with file.reader() as db:
        return db.execute("select count(*) from usage").get


def test_it_is_made_private(open_file, directory):
    file = open_file()
    put(file)
    assert mode(directory) == 0o700
    assert {path.suffix for path in directory.iterdir()} >= {".db", ".lock"}
    assert {mode(path) for path in directory.iterdir()} == {0o600}


def test_modes_are_mended(open_file, directory):
    file = open_file()
    put(file)
    file.close()
    directory.chmod(0o777)
    for path in directory.iterdir():
        path.chmod(0o666)
    assert count(open_file()) == 1
    assert mode(directory) == 0o700
    assert {mode(path) for path in directory.iterdir()} == {0o600}


def test_what_it_holds_is_there_after_reopening(open_file):
    file = open_file()
    put(file)
    file.close()
    assert count(open_file()) == 1


def test_each_home_has_its_own_by_its_real_path(open_file, tmp_path):
    homes = tmp_path / "one", tmp_path / "two"
    for home in homes:
        home.mkdir()
    (tmp_path / "link").symlink_to("one")
    first, second = open_file(homes[0]), open_file(homes[1])
    assert first.path != second.path
    first.close()
    assert open_file(tmp_path / "link").path == first.path


def test_a_second_owner_is_refused(open_file, directory):
    open_file()
    with pytest.raises(AlreadyRunningError, match=str(directory)):
        open_file()


def garbage(path):
    path.write_bytes(b"garbage" * 1000)


def empty(path):
    path.write_bytes(b"")


def cut(path):
    os.truncate(path, 5000)


def other_format(path):
    with apsw.Connection(str(path)) as db:
        db.execute("update format set value = '0'")


def other_tables(path):
    with apsw.Connection(str(path)) as db:
        db.execute("drop table format")


def fifo(path):
    path.unlink()
    os.mkfifo(path)


def dangling(path):
    path.unlink()
    path.symlink_to("nowhere")


def linked(path):
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


def missing(path):
    path.unlink()


@pytest.mark.parametrize(
    "damage",
    [garbage, empty, cut, other_format, other_tables, fifo, dangling, linked, missing],
)
def test_it_is_made_anew(open_file, damage):
    file = open_file()
    put(file)
    file.close()
    damage(file.path)
    before = file.path.lstat().st_ino if damage is not missing else None
    file = open_file()
    assert count(file) == 0
    assert file.path.lstat().st_ino != before
    assert not file.path.is_symlink()
    put(file)


def test_a_change_in_another_module_makes_it_anew(open_file):
    file = open_file()
    put(file)
    file.close()
    assert count(open_file(parts=(SchemaPart("ranked 2", PART.sql),))) == 0


def test_no_log_of_the_old_file_is_replayed_into_the_new(open_file):
    file = open_file()
    writer = file.writer()
    writer.execute("insert into usage values(1, x'00')")
    log = file.path.with_name(file.path.name + "-wal")
    assert log.stat().st_size > 0
    left_behind = log.read_bytes()
    writer.close()
    file.close()
    file.path.unlink()
    log.write_bytes(left_behind)
    assert count(open_file()) == 0


@pytest.mark.parametrize("spoil", ["file in the way", "directory in the way", "dead link"])
def test_where_it_cannot_be_kept_a_temporary_one_serves(
    open_file, directory, tmp_path, monkeypatch, spoil
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    if spoil == "file in the way":
        directory.parent.write_bytes(b"")
    elif spoil == "dead link":
        directory.parent.symlink_to("nowhere")
    else:
        file = open_file()
        file.close()
        file.path.unlink()
        (file.path / "sub").mkdir(parents=True)
    file = open_file()
    put(file)
    assert count(file) == 1
    assert file.path.parent.parent == tmp_path / "tmp"
    assert mode(file.path.parent) == 0o700
    file.close()
    assert list((tmp_path / "tmp").iterdir()) == []


class TestReaders:
    def test_they_cannot_write(self, open_file):
        with pytest.raises(apsw.ReadOnlyError), open_file().reader() as db:
            db.execute("delete from usage")

    def test_they_are_used_again(self, open_file):
        file = open_file()
        with file.reader() as first, file.reader() as second:
            assert first is not second
        with file.reader() as third:
            assert third in {first, second}

    def test_one_that_failed_is_not(self, open_file):
        file = open_file()
        with pytest.raises(apsw.SQLError), file.reader() as first:
            first.execute("nonsense")
        with file.reader() as second:
            assert second is not first

    def test_only_some_are_kept(self, open_file, monkeypatch):
        monkeypatch.setattr(index_file, "READERS_IDLE_MAX", 1)
        file = open_file()
        with file.reader() as first, file.reader() as second:
            pass
        with pytest.raises(apsw.ConnectionClosedError):
            first.execute("select 1")
        assert second.execute("select 1").get == 1

    def test_after_a_rebuild_all_see_the_new_file(self, open_file):
        file = open_file()
        put(file)
        with file.reader() as lent:
            file.rebuild()
            assert lent.execute("select count(*) from usage").get == 1
        assert count(file) == 0

    def test_one_that_was_opened_during_a_rebuild_is_of_either_file(self, open_file, monkeypatch):
        file = open_file()
        put(file)
        plain, seen = index_file._fill, []

        def reading(*wanted):
            plain(*wanted)
            seen.append(count(file))

        monkeypatch.setattr(index_file, "_fill", reading)
        file.rebuild()
        assert (seen, count(file)) == ([1], 0)

    @pytest.mark.parametrize("lend", [index_file.IndexFile.reader, index_file.IndexFile.writer])
    def test_one_of_the_old_file_never_reads_the_new_ones_log(self, open_file, lend):
        file = open_file()
        put(file)
        with lend(file) as old:
            file.rebuild()
            writer = file.writer()
            writer.execute("insert into usage values(1, x'00'), (2, x'00')")
            assert old.execute("select count(*) from usage").get == 1
            writer.close()
        assert count(file) == 2

    def test_one_of_the_old_file_leaves_the_new_ones_log_alone(self, open_file):
        file = open_file()
        old = file.writer()
        old.execute("insert into usage values(1, x'00')")
        file.rebuild()
        writer = file.writer()
        writer.execute("insert into usage values(1, x'00'), (2, x'00')")
        old.close()
        assert count(file) == 2
        writer.execute("insert into usage values(3, x'00')")
        assert count(file) == 3
        writer.close()

    def test_any_thread_may_use_them(self, open_file):
        file = open_file()
        count(file)
        found = []
        thread = threading.Thread(target=lambda: found.append(count(file)))
        thread.start()
        thread.join()
        assert found == [0]


def test_a_disk_that_refuses_the_new_file_is_told_as_such(open_file, monkeypatch):
    file = open_file()

    def failing(*_):
        raise apsw.FullError("disk full")

    monkeypatch.setattr(index_file, "_fill", failing)
    with pytest.raises(OSError, match="cannot write"):
        file.rebuild()
