from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading

import apsw
import pytest

from flue_grpc.errors import ConfigError, UnusableDatabaseError
from flue_grpc.store import files, opening
from flue_grpc.store.connections import open_reader, open_writer
from flue_grpc.store.migrations import CURRENT_VERSION
from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft, MemoryQuery, MessageQuery, StoreSettings

PRAGMAS = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")


def names(directory):
    return sorted(entry.name for entry in directory.iterdir())


def modes(directory):
    return {entry.name: entry.stat().st_mode & 0o777 for entry in directory.iterdir()}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_every_file_is_private_under_any_umask(path, umask):
    before = os.umask(umask)
    try:
        store = Store.open(path)
        store.create_session("s", "t")
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert modes(path.parent) == dict.fromkeys(
            ("lock", "store.db", "store.db-shm", "store.db-wal"), 0o600
        )
        store.close()
    finally:
        os.umask(before)
    assert names(path.parent) == ["lock", "store.db"]


def test_files_that_were_open_to_others_are_made_private(path):
    Store.open(path).close()
    path.chmod(0o666)
    wal = path.with_name("store.db-wal")
    wal.write_bytes(b"")
    wal.chmod(0o644)
    store = Store.open(path)
    store.create_session("s", "t")
    assert set(modes(path.parent).values()) == {0o600}
    store.close()


def test_every_connection_has_its_settings_said(path, store):
    store.create_session("s", "t")
    writer = open_writer(path, StoreSettings())
    normal = open_writer(path, StoreSettings(durability="normal"))
    reader = open_reader(path, StoreSettings())
    assert [writer.pragma(name) for name in PRAGMAS] == ["wal", 2, 1, 5000]
    assert [normal.pragma(name) for name in PRAGMAS] == ["wal", 1, 1, 5000]
    assert [reader.pragma(name) for name in ("foreign_keys", "busy_timeout")] == [1, 5000]
    with pytest.raises(apsw.ReadOnlyError):
        reader.execute("DELETE FROM sessions")
    for connection in (writer, normal, reader):
        connection.close()


def test_migrations_are_recorded(store, sql):
    store.create_session("s", "t")
    rows = sql("SELECT version, name FROM flue_migrations ORDER BY version")
    assert [version for version, _ in rows] == list(range(1, CURRENT_VERSION + 1))
    assert all(name for _, name in rows)


def test_a_restart_shows_everything_unchanged(path, items):
    store = Store.open(path)
    session = store.create_session("s", "t")
    message = store.append_message("s", Draft("user", "a\0b ünï 数据", images=("data:x", "")))
    store.close()
    again = Store.open(path)
    assert items(again.list_messages("s")) == [message]
    assert again.get_session("s").created_at == session.created_at
    again.close()


def wrong_kinds(directory):
    (directory / "a directory").mkdir()
    os.mkfifo(directory / "a fifo")
    (directory / "some text").write_text("not a database, though longer than its header " * 40)
    (directory / "a dangling link").symlink_to(directory / "nothing")
    (directory / "half a header").write_bytes(b"SQLite form")
    return names(directory)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a directory", "is a directory, not a database file"),
        ("a fifo", "is not a regular file"),
        ("some text", "is not a SQLite database"),
        ("half a header", "is not a SQLite database"),
        ("a dangling link", "is a symbolic link to nothing"),
        ("some text/below", "cannot be opened: Not a directory"),
    ],
)
def test_what_is_no_database_is_refused_and_nothing_is_created_beside_it(tmp_path, name, message):
    there = wrong_kinds(tmp_path)
    with pytest.raises(UnusableDatabaseError, match=message):
        Store.open(tmp_path / name)
    assert names(tmp_path) == there


def test_an_unreadable_file_is_refused_and_nothing_is_created_beside_it(path, monkeypatch):
    path.parent.mkdir(mode=0o700)
    path.write_bytes(b"x" * 4096)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UnusableDatabaseError, match="cannot be read: permission denied"):
        Store.open(path)
    assert names(path.parent) == ["store.db"]


def test_a_database_of_another_program_is_left_alone(path):
    path.parent.mkdir(mode=0o700)
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE messages (id)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(UnusableDatabaseError, match="is a database of another program"):
        Store.open(path)
    assert (path.read_bytes(), names(path.parent)) == (before, ["store.db"])


def test_a_newer_database_is_left_alone_and_both_versions_are_named(path, sql):
    Store.open(path).close()
    newer = CURRENT_VERSION + 7
    sql("INSERT INTO flue_migrations VALUES (?, 'from the future', 1)", (newer,))
    before = path.read_bytes()
    message = f"has schema version {newer}, this program knows versions up to {CURRENT_VERSION}"
    with pytest.raises(UnusableDatabaseError, match=message):
        Store.open(path)
    assert (path.read_bytes(), names(path.parent)) == (before, ["lock", "store.db"])


def test_an_unsafe_directory_is_refused(path):
    path.parent.mkdir()
    path.parent.chmod(0o777)
    with pytest.raises(ConfigError, match="others may write in"):
        Store.open(path)
    assert names(path.parent) == []


def test_where_there_is_no_write_ahead_log_the_file_system_is_named(path):
    # This VFS locks with files and so has no shared memory, as a network file system.
    with pytest.raises(UnusableDatabaseError, match=r"is on \w+, which has no .*--data-dir"):
        Store.open(path, StoreSettings(vfs="unix-dotfile"))
    assert names(path.parent) == ["lock"]


def test_the_file_system_of_a_path_is_found(tmp_path, monkeypatch):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "1 0 0:1 / / rw - ext4 /dev/a rw\n"
        f"2 1 0:2 / {tmp_path}/with\\040space rw,x shared:1 - nfs4 server:/ rw\n"
    )
    monkeypatch.setattr(files, "Path", lambda _: mounts)
    assert files.filesystem(tmp_path / "with space" / "deep" / "store.db") == "nfs4"
    assert files.filesystem(tmp_path / "with spaces" / "store.db") == "ext4"
    monkeypatch.setattr(files, "Path", lambda _: tmp_path / "missing")
    assert files.filesystem(tmp_path) == "this file system"


def test_a_symbolic_link_to_a_database_is_followed(tmp_path, path, items):
    real = tmp_path / "elsewhere"
    real.mkdir(mode=0o700)
    path.parent.mkdir(mode=0o700)
    Store.open(real / "kept.db").close()
    path.symlink_to(real / "kept.db")
    store = Store.open(path)
    store.create_session("s", "t")
    assert set(modes(real).values()) == {0o600}
    assert items(store.list_sessions("all"))[0].id == "s"
    store.close()


def test_a_database_locked_by_another_program_is_refused_in_words(path, monkeypatch):
    Store.open(path).close()
    monkeypatch.setattr("flue_grpc.limits.BUSY_TIMEOUT_MS", 20)
    code = (
        "import apsw, sys\nc = apsw.Connection(sys.argv[1])\n"
        "c.pragma('journal_mode', 'delete'); c.execute('BEGIN EXCLUSIVE')\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(UnusableDatabaseError, match="is locked by another program"):
            Store.open(path)
        assert other.poll() is None
        other.stdin.close()
    assert other.returncode == 0
    Store.open(path).close()


def test_a_lost_log_leaves_what_was_checkpointed(path, items):
    store = Store.open(path)
    store.create_session("kept", "t")
    store.close()
    store = Store.open(path)
    store.create_session("in the log", "t")
    without_log = path.with_name("copy.db")
    shutil.copyfile(path, without_log)
    store.close()
    shutil.copyfile(without_log, path)
    store = Store.open(path)
    assert [session.id for session in items(store.list_sessions("all"))] == ["kept"]
    assert store.create_session("new", "t").id == "new"
    store.close()


def test_a_crash_loses_no_answered_write(path, items):
    code = (
        "import os, sys, pathlib\nfrom flue_grpc.store.store import Store\n"
        "from flue_grpc.store.values import Draft\n"
        "s = Store.open(pathlib.Path(sys.argv[1])); s.create_session('s', 't')\n"
        "for i in range(50): s.append_message('s', Draft('user', f'word{i}'))\n"
        "os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert killed.returncode == -9
    store = Store.open(path)
    assert [m.content for m in items(store.list_messages("s"))] == [f"word{i}" for i in range(50)]
    store.close()


def test_an_index_that_differs_is_filled_anew_at_the_start(path, sql, items):
    store = Store.open(path)
    store.create_session("s", "t")
    store.append_message("s", Draft("user", "from the product"))
    store.close()
    sql(
        "INSERT INTO messages (session_id, created_at, role, content) "
        "VALUES ('s', 1, 'user', 'from another program')"
    )
    sql(
        "INSERT INTO memory_entries (scope, created_at, updated_at, content) "
        "VALUES ('_global', 1, 1, 'a foreign note')"
    )
    store = Store.open(path)
    assert [
        r.message.id for r in items(store.search_messages(MessageQuery("another program")))
    ] == [2]
    assert [e.id for e in items(store.search_memory(MemoryQuery("foreign", ("_global",))))] == [1]
    store.close()


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM message_index_data",
        "DELETE FROM message_index_config",
        "DROP TABLE message_index_docsize",
        "DROP TABLE message_index",
    ],
)
def test_an_index_that_cannot_be_opened_is_filled_anew_at_the_start(path, sql, items, damage):
    store = Store.open(path)
    store.create_session("s", "t")
    store.append_message("s", Draft("user", "needle"))
    store.close()
    sql(damage)
    store = Store.open(path)
    assert len(items(store.search_messages(MessageQuery("needle")))) == 1
    assert store.append_message("s", Draft("user", "x")).id == 2
    store.close()


def test_a_complete_index_is_not_filled_again(path, monkeypatch):
    store = Store.open(path)
    store.create_session("s", "t")
    store.append_message("s", Draft("user", "x"))
    store.append_message("s", Draft("tool", "y"))
    store.close()
    monkeypatch.setattr(
        "flue_grpc.store.text_index.TextIndex.refill", lambda *_: pytest.fail("filled again")
    )
    Store.open(path).close()


def test_inspecting_creates_nothing(tmp_path):
    assert opening.inspect(tmp_path / "missing.db", StoreSettings()).kind == "empty"
    (tmp_path / "empty.db").touch()
    assert opening.inspect(tmp_path / "empty.db", StoreSettings()).kind == "empty"
    assert names(tmp_path) == ["empty.db"]


def test_a_failed_first_opening_leaves_no_database(path, monkeypatch):
    def fail(*_):
        raise apsw.FullError("no room")

    monkeypatch.setattr("flue_grpc.store.migrations.migrate", fail)
    with pytest.raises(UnusableDatabaseError, match="the disk is full"):
        Store.open(path)
    assert names(path.parent) == ["lock"]


def test_opening_and_closing_leaves_no_thread(path):
    before = threading.active_count()
    store = Store.open(path)
    assert threading.active_count() == before + 1
    store.close()
    store.close()
    assert threading.active_count() == before


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the sqlite3 shell is not installed")
def test_the_plain_sqlite3_shell_opens_the_file(path):
    store = Store.open(path)
    store.create_session("s", "a title")
    store.append_message("s", Draft("user", "数据库 x", tool_calls=(), images=("data:",)))
    store.close()
    shell = subprocess.run(
        ["sqlite3", str(path)],
        input="PRAGMA integrity_check;\nSELECT title FROM sessions;\n.tables\n",
        capture_output=True,
        text=True,
        check=True,
    )
    lines = shell.stdout.splitlines()
    assert lines[:2] == ["ok", "a title"]
    tables = " ".join(lines[2:]).split()
    assert {"sessions", "messages", "memory_entries", "flue_migrations"} <= set(tables)
