"""Real file systems in a mount namespace of their own: full, read-only, or turning read-only."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys

import pytest

from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft

PRELUDE = """
import logging, pathlib, subprocess, sys
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

FULL_AT_REST = """
from flue_grpc.store import backup, checking
path.parent.mkdir(mode=0o700)
mount("-t", "tmpfs", "-o", "size=1m,mode=0700", "none", path.parent)
store = Store.open(path)
store.create_session("s", "t")
store.append_message("s", Draft("user", "x" * 300_000))
store.close()
copy = path.with_name("copy.db")
def told(act):
    try: act()
    except UnusableDatabaseError as error: return str(error).partition(": ")
    raise AssertionError("not refused")
def back_up(): backup.backup(path, copy, DEFAULT_SETTINGS)
with open(path.with_name("half"), "wb") as half: half.write(b"x" * 400_000)
name, _, reason = told(back_up)
assert name.startswith(f"{copy}.partial-") and reason == "the disk is full", (name, reason)
with open(path.with_name("fill"), "wb", buffering=0) as fill:
    try:
        while True: fill.write(b"x" * 4096)
    except OSError: pass
for act in (back_up, lambda: checking.check(path, DEFAULT_SETTINGS), lambda: Store.open(path)):
    name, _, reason = told(act)
    assert name.startswith(str(path.parent)) and reason == "the disk is full", (name, reason)
path.with_name("fill").unlink()
path.with_name("half").unlink()
assert checking.check(path, DEFAULT_SETTINGS).is_sound
assert sorted(entry.name for entry in path.parent.iterdir()) == ["lock", "store.db"]
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


# An open file keeps anybody from remounting; only the file system itself may, after an error.
TURNS_READ_ONLY = """
image = path.with_name("image")
with image.open("wb") as file: file.truncate(32 << 20)
def attach():
    subprocess.run(["mount", "-o", "loop,errors=remount-ro", image, path.parent], check=True)
    return subprocess.check_output(["findmnt", "-no", "SOURCE", path.parent], text=True).strip()
path = path.parent / "data" / path.name
path.parent.mkdir(mode=0o700)
subprocess.run(["mkfs.ext4", "-q", image], check=True)
device = pathlib.Path(attach()).name
path.parent.chmod(0o700)
logging.disable()  # of checkpoints that fail
store = Store.open(path)
store.create_session("s", "t")
answered = [f"{number} " * 500 for number in range(50)]
for content in answered: store.append_message("s", Draft("user", content))
pathlib.Path("/sys/fs/ext4", device, "trigger_fs_error").write_text("1")
try: path.with_name("new").touch()
except OSError as error: assert error.strerror == "Read-only file system"
told = set()
for write in (
    lambda: store.append_message("s", Draft("user", "lost " * 500)),
    lambda: store.write_memory_entry(EntryDraft("scope", "lost")),
    lambda: store.delete_session("s"),
) * 3:
    try: write()
    except FlueError as error: told.add(type(error).__name__)
    else: raise AssertionError("not refused")
    assert contents(store) == [content[:20] for content in answered]
assert told <= {"DatabaseIoError", "StoreStoppedError"}, told
assert [p.item.message.id for p in store.search_messages(MessageQuery("17"))] == [18]
store.close()
assert refused(lambda: Store.open(path), ConfigError)
subprocess.run(["umount", path.parent], check=True)
assert subprocess.run(["e2fsck", "-fp", image], stdout=subprocess.DEVNULL).returncode < 4
attach()
store = Store.open(path)
assert contents(store) == [content[:20] for content in answered]
store.append_message("s", Draft("user", "after"))
assert contents(store)[-1] == "after" and store.state == "serving"
store.close()
subprocess.run(["umount", path.parent], check=True)
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


@functools.cache
def missing_disk(directory):
    """Why no disk of our own is to be had in ``directory``, whose errors can be made, or nothing."""
    needed = ("unshare", "mkfs.ext4", "e2fsck", "findmnt")
    absent = [name for name in needed if shutil.which(name) is None]
    if absent or os.geteuid() != 0:
        return f"{', '.join(absent)} not installed" if absent else "it takes root"
    with (directory / "probe").open("wb") as file:
        file.truncate(16 << 20)
    attempt = (
        "mkfs.ext4 -q probe && mkdir at && mount -o loop probe at"
        " && ls /sys/fs/ext4/*/trigger_fs_error >/dev/null && umount at"
    )
    command = ["unshare", "-m", "sh", "-c", attempt]
    tried = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    return tried.stderr.strip() if tried.returncode else ""


def run(code, path, namespace="-rm"):
    if missing():
        pytest.skip(f"no mount namespace of our own: {missing()}")
    command = ["unshare", namespace, sys.executable, "-c", PRELUDE + code, str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("done\n", "")


def test_a_full_disk_loses_nothing_that_was_answered(path):
    run(FULL, path)


def test_a_full_disk_is_named_by_every_command(path):
    run(FULL_AT_REST, path)


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


def test_a_file_system_that_turns_read_only_under_an_open_store_loses_nothing(tmp_path):
    if missing_disk(tmp_path):
        pytest.skip(f"no disk of our own: {missing_disk(tmp_path)}")
    run(TURNS_READ_ONLY, tmp_path / "store.db", "-m")
