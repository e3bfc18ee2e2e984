"""Who may own a database: one process, whatever links lead to the file."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from flue_grpc.errors import AlreadyRunningError, ConfigError, UnusableDatabaseError
from flue_grpc.store.database import owned
from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft, StoreSettings


def names(directory):
    return sorted(entry.name for entry in directory.iterdir())


def linked(path, real):
    """Make ``path`` a link to a database at ``real``, which is made."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    Store.open(real).close()
    path.symlink_to(real)


def test_a_database_has_one_owner_whatever_link_leads_to_it(tmp_path, path):
    real = tmp_path / "elsewhere" / "kept.db"
    linked(path, real)
    other = tmp_path / "other" / "store.db"
    linked(other, real)
    store = Store.open(path)
    for name in (path, other, real):
        with pytest.raises(AlreadyRunningError, match=f"{real.parent}/lock is locked"):
            Store.open(name)
        with pytest.raises(AlreadyRunningError), owned(name, StoreSettings()):
            pass
    store.close()
    assert names(path.parent) == names(other.parent) == ["store.db"]


def test_a_link_in_an_unsafe_directory_is_refused(tmp_path, path):
    linked(path, tmp_path / "elsewhere" / "kept.db")
    path.parent.chmod(0o777)
    with pytest.raises(ConfigError, match=f"others may write in {path.parent}"):
        Store.open(path)


def test_a_database_with_a_hard_link_is_refused_in_words(path, items):
    store = Store.open(path)
    store.create_session("s", "t")
    store.close()
    other = path.with_name("other.db")
    os.link(path, other)
    with pytest.raises(UnusableDatabaseError, match=r"has 2 names \(hard links\)"):
        Store.open(path)
    other.unlink()
    store = Store.open(path)
    assert [session.id for session in items(store.list_sessions("all"))] == ["s"]
    store.close()


@pytest.mark.parametrize("suffix", [".before-restore.2", ".partial-7-0123abcd"])
def test_the_second_name_of_a_killed_restore_or_copy_is_taken_back(path, items, suffix):
    store = Store.open(path)
    store.create_session("s", "t")
    store.close()
    earlier = path.with_name("store.db.before-restore")
    earlier.write_text("another file")
    os.link(path, path.with_name(f"store.db{suffix}"))
    store = Store.open(path)
    assert [session.id for session in items(store.list_sessions("all"))] == ["s"]
    store.close()
    assert names(path.parent) == ["lock", "store.db", "store.db.before-restore"]
    assert earlier.read_text() == "another file"


def test_a_second_owner_is_refused_by_name(path, store, session_id):
    code = (
        "import sys, pathlib\nfrom flue_grpc.store.store import Store\n"
        "from flue_grpc.errors import AlreadyRunningError\n"
        "try: Store.open(pathlib.Path(sys.argv[1]))\n"
        "except AlreadyRunningError as error: print(error)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert f"{path.parent}/lock is locked by process {os.getpid()};" in out.stdout
    assert store.get_session(session_id).title == "a talk"


def test_a_refused_second_opening_leaves_the_locks_of_the_first(path, store, session_id):
    with pytest.raises(AlreadyRunningError):
        Store.open(path)
    # Were SQLite's lock on the file gone, the last one to close would remove the log.
    code = (
        "import apsw, sys\nc = apsw.Connection(sys.argv[1])\n"
        "print(c.execute('SELECT count(*) FROM sessions').fetchall()); c.close()"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True)
    assert names(path.parent) == ["lock", "store.db", "store.db-shm", "store.db-wal"]
    assert store.append_message(session_id, Draft("user", "x")).id == 1
