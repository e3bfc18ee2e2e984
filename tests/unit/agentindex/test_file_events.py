"""Hearing of changed files: by events, and by looking where there are none (rule 9)."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading

import pytest
import watchfiles

from flue_grpc import limits
from flue_grpc.agentindex import file_events
from flue_grpc.agentindex.file_events import FileEvents, why_polling
from flue_grpc.agentindex.followed_files import FollowedFiles
from flue_grpc.agentindex.watched_folders import WatchedFolders, watched_folders
from tests.tools import tool
from tests.waiting import wait_until


class Ear:
    """File events of some directories, and what was heard."""

    def __init__(self, *roots):
        self.roots = [str(root) for root in roots]
        self.followed = FollowedFiles()
        self.heard = []
        self.doubts = 0
        self.events = FileEvents(
            lambda: list(self.roots), self.followed, self.heard.extend, self.doubt
        )

    def doubt(self):
        self.doubts += 1

    def hears(self, path):
        wait_until(lambda: str(path) in self.heard)

    def listens(self):
        """Wait until the kernel watches what stands now: the doubt is told only then."""
        wait_until(lambda: self.events.mode == "events" and self.doubts)
        return self


@pytest.fixture
def base(tmp_path):
    return tmp_path.resolve()


@pytest.fixture
def listen(monkeypatch):
    monkeypatch.setattr(limits, "EVENT_CHECK_MS", 20)
    monkeypatch.setattr(limits, "POLL_SECONDS", 0.005)
    opened = []

    def listen(*roots):
        opened.append(Ear(*roots))
        opened[-1].events.start()
        return opened[-1]

    yield listen
    for ear in opened:
        ear.events.stop()
        ear.events.stop()
    assert not any(thread.name == "file-events" for thread in threading.enumerate())


class TestEvents:
    def test_files_that_are_written_renamed_and_removed_are_named(self, base, listen):
        ear = listen(base).listens()
        (base / "a").write_text("1")
        ear.hears(base / "a")
        (base / "a").rename(base / "b")
        ear.hears(base / "b")
        ear.heard.clear()
        (base / "b").unlink()
        ear.hears(base / "b")

    def test_directories_that_appear_with_files_in_them_are_looked_into(self, base, listen):
        ear = listen(base).listens()
        (base / "x/y/z").mkdir(parents=True)
        (base / "x/y/z/f").write_text("1")
        ear.hears(base / "x/y/z/f")
        ear.heard.clear()
        (base / "x/y/z/g").write_text("1")
        ear.hears(base / "x/y/z/g")
        assert str(base / "x") not in ear.heard

    def test_a_root_may_appear_vanish_and_be_replaced(self, base, listen):
        root = base / "later"
        ear = listen(root)
        wait_until(lambda: ear.events.mode == "events")
        assert ear.doubts == 0
        root.mkdir()
        ear.listens()
        (root / "a").write_text("1")
        ear.hears(root / "a")
        # Between two looks, so that it is there at each of them.
        before = ear.doubts
        root.rename(base / "old")
        root.mkdir()
        wait_until(lambda: ear.doubts > before)
        (root / "b").write_text("1")
        ear.hears(root / "b")

    def test_roots_may_move_elsewhere(self, base, listen):
        (base / "one").mkdir()
        (base / "two").mkdir()
        ear = listen(base / "one").listens()
        before = ear.doubts
        ear.roots[:] = [str(base / "two")]
        wait_until(lambda: ear.doubts > before)
        (base / "two/a").write_text("1")
        ear.hears(base / "two/a")

    def test_a_name_that_is_no_utf8_stops_nothing(self, base, listen):
        ear = listen(base).listens()
        with open(os.fsencode(base) + b"/\xff", "wb"):  # noqa: PTH123 - pathlib has no bytes
            pass
        wait_until(lambda: ear.doubts > 1)
        ear.listens()
        (base / "a").write_text("1")
        ear.hears(base / "a")

    def test_nor_does_that_of_a_directory(self, base, listen, caplog):
        (base / "a").mkdir()
        odd = base / os.fsdecode(b"\xff")
        (odd / "within").mkdir(parents=True)
        ear = listen(base).listens()
        for number in range(3):
            list(odd.iterdir())  # which ends the watcher, too
            (base / f"a/{number}").write_text("1")
            wait_until(lambda before=ear.doubts: ear.doubts > before)
            ear.listens()
            (base / f"a/new{number}").write_text("1")
            ear.hears(base / f"a/new{number}")
        assert (ear.events.mode, caplog.text) == ("events", "")

    def test_even_if_it_ends_each_watcher_at_once(self, base, listen, monkeypatch, caplog):
        def watch(*_paths, **_options):
            raise RuntimeError(f'Unable to decode path "{base}/\\xFF" to string')
            yield

        monkeypatch.setattr(watchfiles, "watch", watch)
        ear = listen(base)
        wait_until(lambda: ear.doubts > 3)
        path = base / "a"
        path.write_text("1")
        with ear.followed.following(str(path), threading.Event()):
            ear.hears(path)
        assert (ear.events.mode, caplog.text) == ("events", "")
        assert why_polling([str(base)]) == ""

    def test_what_is_asked_now_and_then_is_swept_in_any_case(self, base, listen, monkeypatch):
        monkeypatch.setattr(limits, "EVENT_DOUBT_SECONDS", 0.02)
        ear = listen(base)
        wait_until(lambda: ear.doubts > 3)


class TestLinks:
    """A watcher of the kernel follows them; one to / would take in the whole disk."""

    def test_no_link_is_followed_and_everything_else_is_watched(self, base, listen):
        root, outside = base / "root", base / "outside"
        (root / "real").mkdir(parents=True)
        (outside / "deep").mkdir(parents=True)
        (root / "link").symlink_to(outside)
        ear = listen(root).listens()
        (outside / "deep/f").write_text("1")
        (root / "real/f").write_text("1")
        ear.hears(root / "real/f")
        (root / "real/new").mkdir()
        (root / "real/new/g").write_text("1")
        ear.hears(root / "real/new/g")
        ear.heard.clear()
        wait_until(lambda: ear.doubts > 1)  # what appeared is watched by now
        (root / "real/new/h").write_text("1")
        ear.hears(root / "real/new/h")
        assert not [path for path in ear.heard if "/link/" in path or "/outside/" in path]

    def test_a_link_that_appears_is_not_walked_into(self, base, listen):
        root, outside = base / "root", base / "outside"
        root.mkdir()
        outside.mkdir()
        (outside / "f").write_text("1")
        ear = listen(root).listens()
        (root / "link").symlink_to(outside)
        (root / "last").write_text("1")
        ear.hears(root / "last")
        assert not [path for path in ear.heard if path.endswith("/f")]


class TestLostEvents:
    @pytest.fixture
    def deaf(self, monkeypatch):
        """A watcher that tells of nothing: its queue has run over, or a watch is missing."""

        def watch(*_paths, stop_event, rust_timeout, **_options):
            while not stop_event.wait(rust_timeout / 1000):
                yield set()

        monkeypatch.setattr(watchfiles, "watch", watch)

    @pytest.mark.usefixtures("deaf")
    def test_a_followed_file_is_looked_at_all_the_same(self, base, listen):
        path = base / "a"
        path.write_text("1")
        ear = listen(base).listens()
        woken = threading.Event()
        with ear.followed.following(str(path), woken):
            ear.hears(path)  # once, for it may have changed before it was looked at
            ear.heard.clear()
            path.write_text("longer")
            ear.hears(path)
            ear.heard.clear()
            path.unlink()
            ear.hears(path)

    def test_a_storm_of_events_does_not_keep_it_from_looking(self, base, listen, monkeypatch):
        def watch(*_paths, stop_event, **_options):
            while not stop_event.wait(0.001):
                yield {(watchfiles.Change.modified, str(base / "noise"))}

        monkeypatch.setattr(watchfiles, "watch", watch)
        monkeypatch.setattr(limits, "EVENT_DOUBT_SECONDS", 0.02)
        path = base / "a"
        path.write_text("1")
        ear = listen(base).listens()
        with ear.followed.following(str(path), threading.Event()):
            ear.hears(path)
            wait_until(lambda: ear.doubts > 3)


INSTANCES = "Error creating recommended watcher: Too many open files (os error 24)"
REFUSALS = {
    "the watch limit is reached": OSError("OS file watch limit reached. about [...]"),
    "No space left on device": OSError(28, "No space left on device"),
    INSTANCES: RuntimeError(INSTANCES),  # as watchfiles raises it, by a class of its own
}


class TestPolling:
    @pytest.fixture(params=REFUSALS)
    def reason(self, request, monkeypatch):
        def watch(*_paths, **_options):
            raise REFUSALS[request.param]
            yield

        monkeypatch.setattr(watchfiles, "watch", watch)
        return request.param

    def test_it_looks_where_no_watcher_is_to_be_had(
        self, base, listen, monkeypatch, caplog, reason
    ):
        monkeypatch.setattr(limits, "POLL_SWEEP_SECONDS", 0.02)
        path = base / "a"
        path.write_text("1")
        with caplog.at_level(logging.WARNING):
            ear = listen(base)
            wait_until(lambda: ear.events.mode == "polling" and ear.doubts > 2)
        assert ear.events.reason == reason
        assert caplog.messages == [f"no file events, looking at the files instead: {reason}"]
        with ear.followed.following(str(path), threading.Event()):
            ear.hears(path)
            ear.heard.clear()
            path.write_text("longer")
            ear.hears(path)

    def test_it_tries_again_for_events(self, base, listen, monkeypatch):
        plain, refusals = watchfiles.watch, [1, 1]

        def watch(*paths, **options):
            if refusals:
                refusals.pop()
                raise OSError("OS file watch limit reached")
            yield from plain(*paths, **options)

        monkeypatch.setattr(watchfiles, "watch", watch)
        monkeypatch.setattr(limits, "EVENT_RETRY_SECONDS", 0.02)
        ear = listen(base).listens()
        (base / "a").write_text("1")
        ear.hears(base / "a")

    def test_it_looks_where_the_file_system_tells_nothing(self, base, listen, monkeypatch):
        mounts = base / "mounts"
        mounts.write_text(f"disk / ext4 rw 0 0\nserver:/x {base}/far nfs4 rw 0 0\n")
        monkeypatch.setattr(file_events, "_MOUNTS", mounts)
        (base / "far").mkdir()
        ear = listen(base / "far")
        wait_until(lambda: ear.events.mode == "polling")
        assert ear.events.reason == "the file system tells of no changes"
        near = listen(base)
        near.listens()

    def test_a_fault_of_who_listens_is_logged_and_it_goes_on(
        self, base, listen, monkeypatch, caplog
    ):
        monkeypatch.setattr(limits, "POLL_SWEEP_SECONDS", 0.01)
        faults = [KeyError("x"), KeyError("y")]

        def doubt(self):
            if faults:
                raise faults.pop()
            self.doubts += 1

        monkeypatch.setattr(Ear, "doubt", doubt)
        ear = listen(base).listens()
        (base / "a").write_text("1")
        ear.hears(base / "a")
        assert [record.message for record in caplog.records] == [
            "listening to file events failed; it begins again"
        ] * 2


SCARCE = """
import sys, threading, time
from flue_grpc.agentindex.file_events import FileEvents, why_polling
from flue_grpc.agentindex.followed_files import FollowedFiles

doubted = threading.Event()
events = FileEvents(lambda: sys.argv[1:], FollowedFiles(), print, doubted.set)
events.start()
assert doubted.wait(20)
print(events.mode, events.reason, sep=": ")
print(why_polling(sys.argv[1:]))
events.stop()
"""


def test_the_kernels_limit_of_watches_leads_to_polling(base):
    for number in range(10):
        (base / f"d{number}").mkdir()
    script = 'echo 5 > /proc/sys/user/max_inotify_watches && exec "$0" -c "$1" "$2"'
    program = [sys.executable, SCARCE, str(base)]
    run = subprocess.run(
        [tool("unshare"), "--user", "--map-root-user", "sh", "-c", script, *program],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if run.returncode and "polling" not in run.stdout:
        pytest.skip(f"no user namespace with limits of its own: {run.stderr.strip()[-200:]}")
    assert run.stdout.splitlines() == [
        "polling: the watch limit is reached",
        "the watch limit is reached",
    ]


def test_directories_that_must_not_be_read_are_left_out(base, monkeypatch):
    for name in ("open", "closed/within"):
        (base / name).mkdir(parents=True)
    plain = os.scandir

    def scandir(path):
        if path == str(base / "closed"):
            raise PermissionError(13, "Permission denied")
        return plain(path)

    assert watched_folders([str(base)]) == WatchedFolders((str(base),), is_recursive=True)
    monkeypatch.setattr(os, "scandir", scandir)
    paths = (str(base), str(base / "open"))
    assert watched_folders([str(base)]) == WatchedFolders(paths, is_recursive=False)
    assert watched_folders([str(base / "gone")]).paths == (str(base / "gone"),)
    assert why_polling([str(base / "closed")]) == "Permission denied"


def test_one_whose_name_is_no_utf8_is_left_out(base):
    (base / "good").mkdir()
    (base / os.fsdecode(b"\xff") / "within").mkdir(parents=True)
    paths = (str(base), str(base / "good"))
    assert watched_folders([str(base)]) == WatchedFolders(paths, is_recursive=False)
    assert why_polling([str(base)]) == ""


def test_a_reason_names_no_path(base, monkeypatch):
    def watch(*_paths, **_options):
        raise RuntimeError(f'error in underlying watcher: refused about ["{base}"]')
        yield

    monkeypatch.setattr(watchfiles, "watch", watch)
    assert why_polling([str(base)]) == "error in underlying watcher: refused"


def test_why_polling(base, monkeypatch):
    assert why_polling([str(base), str(base / "missing")]) == ""
    assert why_polling([str(base / "missing")]) == ""
    mounts = base / "mounts"
    mounts.write_text(f"disk / ext4 rw 0 0\nserver:/x {base} fuse.sshfs rw 0 0\n")
    monkeypatch.setattr(file_events, "_MOUNTS", mounts)
    assert why_polling([str(base)]) == "the file system tells of no changes"


class TestFollowedFiles:
    def test_every_follower_of_a_file_is_woken_and_no_other(self):
        followed = FollowedFiles()
        one, two, other = threading.Event(), threading.Event(), threading.Event()
        with (
            followed.following("/a", one),
            followed.following("/a", two),
            followed.following("/b", other),
        ):
            assert followed.count == 2
            followed.wake(["/a", "/c"])
            assert (one.is_set(), two.is_set(), other.is_set()) == (True, True, False)
            followed.wake_all()
            assert other.is_set()
        assert followed.count == 0

    def test_a_file_is_told_once_as_new_then_when_it_differs(self, base):
        path = base / "a"
        path.write_text("1")
        followed = FollowedFiles()
        with followed.following(str(path), threading.Event()):
            assert followed.changed() == [str(path)]
            assert followed.changed() == []
            path.write_text("12")
            assert followed.changed() == [str(path)]
            path.with_suffix(".new").write_text("34")
            path.with_suffix(".new").rename(path)
            assert followed.changed() == [str(path)]
            path.unlink()
            assert followed.changed() == [str(path)]
            assert followed.changed() == []
        with followed.following(str(path), threading.Event()):
            assert followed.changed() == [str(path)]
        assert followed.changed() == []
