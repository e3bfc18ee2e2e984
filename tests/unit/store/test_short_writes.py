"""Writes that the system does only in part, and a file system that turns read-only."""

from __future__ import annotations

import subprocess
import sys

import apsw
import pytest

from flue_grpc.errors import DatabaseIoError, StoreReadOnlyError
from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft, StoreSettings

from .faults import WRITE, Fault, FaultyVFS, io_error

SHORT = """
import pathlib, resource, signal, sys
from flue_grpc.errors import *
from flue_grpc.store.store import Store
from flue_grpc.store.values import *
path = pathlib.Path(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Store.open(path)
store.create_session("s", "t")
whole = resource.getrlimit(resource.RLIMIT_FSIZE)
wal = path.with_name("store.db-wal")
answered = refused = 0
for number in range(60):
    # Ends in the middle of a page, so that the system takes a part of the write.
    resource.setrlimit(resource.RLIMIT_FSIZE, (wal.stat().st_size + 1000 * (number % 9), whole[1]))
    try:
        store.append_message("s", Draft("user", f"{number} " + "x" * 3000))
        answered += 1
    except (DatabaseIoError, DiskFullError):
        refused += 1
        resource.setrlimit(resource.RLIMIT_FSIZE, whole)
        store.append_message("s", Draft("user", f"{number} again"))
        answered += 1
    assert store.state == "serving"
resource.setrlimit(resource.RLIMIT_FSIZE, whole)
assert len([*store.list_messages("s")]) == answered == 60
assert refused > 10
store.close()
print("done")
"""


def test_a_write_that_is_done_in_part_is_refused_and_undone(path):
    ran = subprocess.run(
        [sys.executable, "-c", SHORT, str(path)], capture_output=True, text=True, check=False
    )
    assert (ran.stdout, ran.stderr) == ("done\n", "")
    store = Store.open(path)
    contents = [placed.item.content.split()[0] for placed in store.list_messages("s")]
    store.close()
    assert contents == [str(number) for number in range(60)]
    connection = apsw.Connection(str(path))
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


@pytest.mark.parametrize(
    ("error", "expected", "state"),
    [
        # What SQLite makes of EROFS, and what it says of a file it may not write.
        (io_error(WRITE), DatabaseIoError, "serving"),
        (apsw.ReadOnlyError("injected"), StoreReadOnlyError, "read_only"),
    ],
    ids=["remounted", "read-only"],
)
def test_a_file_system_that_turns_read_only_and_back_costs_the_writes_between(
    path, items, error, expected, state
):
    vfs = FaultyVFS("read-only")
    store = Store.open(path, StoreSettings(vfs=vfs.name))
    store.create_session("s", "t")
    vfs.faults = [Fault("write", "-wal", error, times=10_000)]
    for _ in range(5):
        with pytest.raises(expected):
            store.append_message("s", Draft("user", "lost"))
        assert items(store.list_messages("s")) == []
        assert store.state == state
    vfs.faults = []
    store.append_message("s", Draft("user", "kept"))
    assert store.state == "serving"
    assert [message.content for message in items(store.list_messages("s"))] == ["kept"]
    store.close()
    vfs.unregister()
