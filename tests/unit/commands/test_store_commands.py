from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from flue_grpc.commands import store_commands
from flue_grpc.errors import AlreadyRunningError, SessionNotFoundError, UnusableDatabaseError
from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def filled(data):
    store = Store.open(data / "store.db")
    store.create_session("s", "a talk")
    store.append_message("s", Draft("user", "hello"))
    store.close()
    return data


@pytest.fixture
def run(data):
    """Run a command on the data directory."""

    def command(operation, *, at=None, **given):
        arguments = {"session": "", "format": "jsonl", "output": None, "repair": False} | given
        settings = SimpleNamespace(data_dir=at or data, durability="full")
        return store_commands.run(SimpleNamespace(operation=operation, **arguments), settings)

    return command


def sessions_in(path):
    store = Store.open(path)
    try:
        return [placed.item.id for placed in store.list_sessions("all")]
    finally:
        store.close()


def test_backup_and_restore(run, filled, tmp_path, capfd):
    assert run("backup", destination=tmp_path / "copy.db") == 0
    store = Store.open(filled / "store.db")
    store.delete_session("s")
    store.close()
    assert run("restore", source=tmp_path / "copy.db") == 0
    assert sessions_in(filled / "store.db") == ["s"]
    assert (
        capfd.readouterr().err
        == f"flue-grpc: the replaced database is kept as {filled}/store.db.before-restore\n"
    )


def test_backup_takes_a_relative_path(run, filled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("backup", destination=Path("copy.db")) == 0
    assert (tmp_path / "copy.db").exists()


def test_export_and_import(run, filled, tmp_path, capfdbinary):
    assert run("export") == 0
    out = capfdbinary.readouterr().out
    file = tmp_path / "sessions.jsonl"
    file.write_bytes(out)
    other = tmp_path / "other"
    assert run("import", file=str(file), at=other) == 0
    assert (
        capfdbinary.readouterr().err == b"flue-grpc: imported 1 session with 1 message, refused 0\n"
    )
    assert run("export", session="s", at=other) == 0
    assert capfdbinary.readouterr().out == out


def test_export_as_markdown(run, filled, capfd):
    assert run("export", format="markdown") == 0
    assert capfd.readouterr().out.startswith("# a talk\n")


def test_export_of_an_unknown_session(run, filled):
    with pytest.raises(SessionNotFoundError):
        run("export", session="unknown")


def test_import_tells_what_it_refused(run, filled, tmp_path, capfd):
    file = tmp_path / "sessions.jsonl"
    run("export")
    file.write_bytes(capfd.readouterr().out.encode() + b"garbage\n")
    assert run("import", file=str(file)) == 1
    assert capfd.readouterr().err.splitlines() == [
        "flue-grpc: line 1: session s: a session with this id exists",
        "flue-grpc: imported 0 sessions with 0 messages, refused 1",
    ]


def test_import_says_what_a_hostile_file_holds_without_harm_to_a_terminal(run, tmp_path, capfd):
    file = tmp_path / "sessions.jsonl"
    name = "a\\u001b[31m\\u0007b\\nc" + "é" * 5000
    times = '"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"'
    file.write_text(f'{{"type":"session","id":"{name}","title":"",{times},"messages":0}}\n')
    assert run("import", file=str(file)) == 1
    first, last = capfd.readouterr().err.splitlines()
    assert first.startswith("flue-grpc: line 1: session a\u2407b c\u00e9")
    assert len(first.encode()) <= 1024 + len("flue-grpc: ")
    assert last == "flue-grpc: imported 0 sessions with 0 messages, refused 1"


def test_import_of_a_missing_file_creates_nothing(run, tmp_path):
    with pytest.raises(UnusableDatabaseError, match="cannot be read: No such file or directory"):
        run("import", file=str(tmp_path / "missing"))
    assert list(tmp_path.iterdir()) == []


def test_check_says_what_it_found(run, filled, capfd):
    assert run("check") == 0
    assert capfd.readouterr().out.splitlines() == [
        "schema version 1",
        "sessions: 1 row",
        "messages: 1 row",
        "memory_entries: 0 rows",
        "ok",
    ]


def test_check_repairs_the_search_index(run, filled, capfd):
    connection = apsw.Connection(str(filled / "store.db"))
    connection.execute("UPDATE messages SET content = 'changed'")
    connection.close()
    assert run("check") == 1
    assert capfd.readouterr().out.splitlines()[-2:] == [
        "search index message_index is wrong for 1 row; check --repair fills it anew",
        "not ok",
    ]
    assert run("check", repair=True) == 0
    assert capfd.readouterr().out.splitlines()[-1] == "ok"


def test_check_tells_of_damage(run, filled, capfd):
    connection = apsw.Connection(str(filled / "store.db"))
    connection.execute("DELETE FROM sessions")
    connection.close()
    assert run("check") == 1
    assert capfd.readouterr().out.splitlines()[-3:] == [
        "damaged: row 1 of messages refers to a missing row of sessions",
        "restore a backup, or export what can be read",
        "not ok",
    ]


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("backup", {"destination": Path("x.db")}),
        ("export", {}),
        ("check", {}),
        ("check", {"repair": True}),
    ],
)
def test_without_a_database_nothing_is_created(run, operation, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnusableDatabaseError):
        run(operation, **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def server(filled):
    """Another process that owns the database."""
    code = (
        "import sys, pathlib; from flue_grpc.store.store import Store\n"
        "s = Store.open(pathlib.Path(sys.argv[1])); s.create_session('live', 't')\n"
        "print('open', flush=True); sys.stdin.read(); s.close()"
    )
    path = str(filled / "store.db")
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"open\n"
        yield process
        process.stdin.close()
        assert process.wait() == 0


def test_backup_export_and_check_work_beside_a_server(run, server, tmp_path, capfd):
    assert run("backup", destination=tmp_path / "copy.db") == 0
    assert sessions_in(tmp_path / "copy.db") == ["live", "s"]
    assert run("export", session="live") == 0
    assert run("check") == 0
    assert "sessions: 2 rows" in capfd.readouterr().out


def test_restore_import_and_repair_are_refused_and_name_the_server(run, server, tmp_path, filled):
    (tmp_path / "file").write_bytes(b"")
    run("backup", destination=tmp_path / "copy.db")
    for operation, arguments in (
        ("restore", {"source": tmp_path / "copy.db"}),
        ("import", {"file": str(tmp_path / "file")}),
        ("check", {"repair": True}),
    ):
        with pytest.raises(AlreadyRunningError, match=f"locked by process {server.pid};"):
            run(operation, **arguments)
    assert sorted(entry.name for entry in filled.iterdir()) == [
        "lock",
        "store.db",
        "store.db-shm",
        "store.db-wal",
    ]


def test_an_export_goes_on_when_a_session_is_deleted_meanwhile_and_names_it(
    run, filled, capfd, monkeypatch
):
    store = Store.open(filled / "store.db")
    store.create_session("a", "t")
    store.append_message("a", Draft("user", "hello"))
    writer = store_commands.WRITERS["jsonl"]

    class Deleting:
        begin = staticmethod(writer.begin)

        @staticmethod
        def message(message):
            if message.session_id == "a":
                store.delete_session("a")
            return writer.message(message)

    monkeypatch.setattr("flue_grpc.limits.READ_BATCH_ROWS", 1)
    monkeypatch.setitem(store_commands.WRITERS, "jsonl", Deleting())
    assert run("export") == 0
    written = capfd.readouterr()
    assert "session a was deleted while it was read, so it was left out\n" in written.err
    assert [line[:26] for line in written.out.splitlines()] == [
        '{"type":"session","id":"s"',
        '{"type":"message","session',
    ]
    store.close()


def test_a_server_is_found_through_a_link_to_its_database(run, server, tmp_path, filled):
    run("backup", destination=tmp_path / "copy.db")
    linked = tmp_path / "linked"
    linked.mkdir(mode=0o700)
    (linked / "store.db").symlink_to(filled / "store.db")
    with pytest.raises(AlreadyRunningError, match=f"{filled}/lock is locked by process"):
        run("restore", source=tmp_path / "copy.db", at=linked)
    assert [entry.name for entry in linked.iterdir()] == ["store.db"]


def test_a_bar_is_shown_on_a_terminal_only(run, filled, tmp_path, capfd, monkeypatch):
    code = (
        "import sys; from types import SimpleNamespace\n"
        "from pathlib import Path\nfrom flue_grpc.commands import store_commands as c\n"
        "c._backup(SimpleNamespace(destination=Path(sys.argv[2])), SimpleNamespace(data_dir=Path(sys.argv[1]), durability='full'))\n"
        "print('rich' in sys.modules)"
    )
    quiet = subprocess.run(
        [sys.executable, "-c", code, str(filled), str(tmp_path / "a.db")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (quiet.stdout, quiet.stderr) == ("False\n", "")
    controller, terminal = os.openpty()
    shown = subprocess.run(
        [sys.executable, "-c", code, str(filled), str(tmp_path / "b.db")],
        stderr=terminal,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | {"TERM": "xterm"},
    )
    os.close(terminal)
    assert shown.stdout == "True\n"
    assert b"backing up" in os.read(controller, 100_000)
    os.close(controller)


def test_restore_of_a_missing_file_says_so_and_touches_nothing(run, filled, tmp_path):
    with pytest.raises(UnusableDatabaseError, match=f"^{tmp_path}/nope does not exist$"):
        run("restore", source=tmp_path / "nope")
    assert sessions_in(filled / "store.db") == ["s"]


@pytest.mark.parametrize("format_", ["jsonl", "markdown"])
def test_an_export_of_nothing_says_what_else_there_is(run, data, format_, capfd):
    Store.open(data / "store.db").close()
    assert run("export", format=format_) == 0
    assert capfd.readouterr().err == (
        "flue-grpc: the Store has no session; "
        "the transcript of an agent is exported by --transcript ID\n"
    )
