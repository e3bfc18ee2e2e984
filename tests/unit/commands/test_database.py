"""The commands on the Store's database, together."""

from __future__ import annotations

from contextlib import closing

import pytest

from flue_grpc import cli
from flue_grpc.store.store import Store
from tests.programs import run


def test_a_file_that_cannot_be_written_is_told_in_words(home):
    Store.open(home / "data" / "store.db").close()
    file = home / "nowhere" / "out"
    shown = run("export", "--data-dir", str(home / "data"), "-o", str(file))
    assert shown.returncode == 2
    assert shown.stderr == f"flue-grpc: {file}: No such file or directory\n"


def test_a_session_goes_from_one_database_to_another_through_a_pipe(home):
    with closing(Store.open(home / "data" / "store.db")) as store:
        store.create_session("s", "a title")
    exported = run("export", "--data-dir", str(home / "data")).stdout
    imported = run("import", "-", "--data-dir", str(home / "other"), input=exported)
    assert (imported.returncode, imported.stderr) == (
        0,
        "flue-grpc: imported 1 session with 0 messages, refused 0\n",
    )
    assert run("export", "--data-dir", str(home / "other")).stdout == exported


def test_commands_on_the_database(home, capfd):
    with closing(Store.open(home / "data" / "store.db")) as store:
        store.create_session("s", "a title")
    data = ["--data-dir", str(home / "data")]
    assert cli.main(["check", *data]) == 0
    assert capfd.readouterr().out.endswith("ok\n")
    copy = home / "copy.db"
    assert cli.main(["backup", str(copy), *data]) == 0
    assert cli.main(["restore", str(copy), "--data-dir", str(home / "other")]) == 0
    exported = home / "sessions.jsonl"
    capfd.readouterr()
    assert cli.main(["export", *data]) == 0
    exported.write_text(capfd.readouterr().out)
    assert cli.main(["import", str(exported), "--data-dir", str(home / "third")]) == 0
    with closing(Store.open(home / "third" / "store.db")) as store:
        assert store.get_session("s").title == "a title"


@pytest.mark.parametrize(
    "arguments", [("check",), ("export",), ("export", "--format", "markdown"), ("backup", "x")]
)
def test_commands_on_a_database_that_is_not_there(home, capsys, arguments):
    assert cli.main([*arguments, "--data-dir", str(home / "none")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("flue-grpc: ")
    assert captured.err.count("\n") == 1


def test_an_export_of_a_session_that_is_not_there(home, capsys):
    Store.open(home / "data" / "store.db").close()
    arguments = ["export", "--session", "none", "--data-dir", str(home / "data")]
    assert cli.main(arguments) == 1
    assert capsys.readouterr().err == "flue-grpc: there is no such session\n"
