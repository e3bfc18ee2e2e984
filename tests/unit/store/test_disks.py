"""Real file systems in a mount namespace of their own: a full one, and a file on a read-only one."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys

import pytest

from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft

PRELUDE = """
import pathlib, subprocess, sys
from flue_grpc.errors import *
from flue_grpc.store.store import Store
from flue_grpc.store.values import *
path = pathlib.Path(sys.argv[1])
def mount(*arguments): subprocess.run(["mount", *map(str, arguments)], check=True)
def contents(store): return [p.item.content[:20] for p in store.list_messages("s")]
def refused(write, error):
    try: write()
    except error: return True
    raise AssertionError("not refused")
"""

FULL = """
path.parent.mkdir(mode=0o700)
mount("-t", "tmpfs", "-o", "size=1m,mode=0700", "none", path.parent)
store = Store.open(path)
store.create_session("s", "t")
answered = []
while True:
    try: store.append_message("s", Draft("user", f"{len(answered):06} " * 1500))
    except DiskFullError: break
    answered.append(f"{len(answered):06} " * 1500)
answered = [content[:20] for content in answered]
assert len(answered) > 3
assert contents(store) == answered and store.state == "serving"
assert refused(lambda: store.append_message("s", Draft("user", "x" * 100_000)), DiskFullError)
mount("-o", "remount,size=4m", path.parent)
store.append_message("s", Draft("user", "after"))
store.close()
store = Store.open(path)
assert contents(store) == [*answered, "after"]
store.close()
print("done")
"""

READ_ONLY = """
mount("--bind", path, path)
mount("-o", "remount,bind,ro", path)
store = Store.open(path)
assert store.state == "read_only"
assert contents(store) == ["kept"]
assert [p.item.message.id for p in store.search_messages(MessageQuery("kept"))] == [1]
assert refused(lambda: store.append_message("s", Draft("user", "x")), StoreReadOnlyError)
assert refused(lambda: store.delete_session("s"), StoreReadOnlyError)
assert store.state == "read_only"
store.close()
print("done")
"""

READ_ONLY_AND_NEW = """
path.parent.mkdir(mode=0o700)
path.touch(mode=0o600)
mount("--bind", path, path)
mount("-o", "remount,bind,ro", path)
try: Store.open(path)
except UnusableDatabaseError as error: assert "cannot be written, so it cannot be made ready" in str(error)
print("done")
"""


@functools.cache
def missing():
    """Why no mount namespace is to be had here, or nothing."""
    if shutil.which("unshare") is None:
        return "unshare is not installed"
    attempt = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    tried = subprocess.run(attempt, capture_output=True, text=True, check=False)
    return tried.stderr.strip()


def run(code, path):
    if missing():
        pytest.skip(f"no mount namespace of our own: {missing()}")
    command = ["unshare", "-rm", sys.executable, "-c", PRELUDE + code, str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("done\n", "")


def test_a_full_disk_loses_nothing_that_was_answered(path):
    run(FULL, path)


def test_a_file_that_cannot_be_written_is_served_for_reading(path):
    store = Store.open(path)
    store.create_session("s", "t")
    store.append_message("s", Draft("user", "kept"))
    store.close()
    before = path.read_bytes()
    run(READ_ONLY, path)
    assert path.read_bytes() == before


def test_a_new_file_that_cannot_be_written_is_refused_in_words(path):
    run(READ_ONLY_AND_NEW, path)
