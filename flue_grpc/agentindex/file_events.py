"""Hearing of changed transcripts: from the kernel, or by looking where it tells nothing.

The kernel's watches may run out, its queue may overflow, and some file systems tell of
no change. So the followed files are looked at often in any case, and all others by
sweeps now and then: an event that was lost is late and not missing.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import stat
import time
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, Literal

from flue_grpc import limits
from flue_grpc.agentindex.watched_folders import files_below, watched_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from flue_grpc.agentindex.followed_files import FollowedFiles
    from flue_grpc.agentindex.watched_folders import WatchedFolders

Mode = Literal["off", "events", "polling"]
Standing = dict[str, tuple[int, int]]
"""The roots that are there, with the device and inode of each."""

_log = logging.getLogger(__name__)
_MOUNTS: Final = Path("/proc/self/mounts")
# These show changes made on another machine to nobody, or have no events at all.
_SILENT_FILE_SYSTEMS: Final = ("9p", "afs", "cifs", "fuse", "nfs", "smb3", "vboxsf", "virtiofs")

_PATHS: Final = re.compile(r'(?: about)? *\[?"')

_SILENCE: Final = "the file system tells of no changes"
# watchfiles has no error of its own where the system refuses a watcher.
_REFUSALS: Final = (OSError, RuntimeError, ValueError)


def why_polling(roots: Iterable[str]) -> str:
    """Try to hear of changes below ``roots``; return why that fails, empty when it does not."""
    present = [root for root in roots if _identity(root) is not None]
    if any(map(_is_silent, present)):
        return _SILENCE
    stopping = Event()
    try:
        for _ in _watch(watched_folders(present), stopping) if present else ():
            stopping.set()
    except _REFUSALS as error:
        return "" if _is_of_a_name(error) else _reason(error)
    return ""


class FileEvents:
    """One thread that tells ``on_paths`` which files changed.

    ``on_paths`` gets real paths, of files below the directories that are there, were
    there, or have just become visible. ``on_doubt`` is told that something may have been
    missed: sweep everything.
    """

    def __init__(
        self,
        directories: Callable[[], Sequence[str]],
        followed: FollowedFiles,
        on_paths: Callable[[Iterable[str]], None],
        on_doubt: Callable[[], None],
    ) -> None:
        """Be ready; ``directories`` are real paths, may be missing, and may change."""
        self._directories = directories
        self._followed = followed
        self._on_paths = on_paths
        self._on_doubt = on_doubt
        self._stopping = Event()
        self._look_at = 0.0
        self._doubt_at = 0.0
        self._thread = Thread(target=self._run, name="file-events", daemon=True)
        self.mode: Mode = "off"
        self.reason = ""

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it; calling it again does nothing."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._listen_or_poll(self._standing())
            except Exception:  # noqa: BLE001 - a thread that ended would make every event late
                _log.exception("listening to file events failed; it begins again")
                self._stopping.wait(limits.POLL_SWEEP_SECONDS)

    def _standing(self) -> Standing:
        looks = ((path, _identity(path)) for path in self._directories())
        return {path: identity for path, identity in looks if identity is not None}

    def _listen_or_poll(self, standing: Standing) -> None:
        if any(map(_is_silent, standing)):
            self._poll(_SILENCE, standing)
            return
        try:
            self._listen(standing)
        except FileNotFoundError:
            self._stopping.wait(limits.EVENT_CHECK_MS / 1000)  # it vanished while we looked
        except _REFUSALS as error:
            self._poll(_reason(error), standing)

    def _listen(self, standing: Standing) -> None:
        """Hand events over until a directory appears or vanishes, or for some minutes.

        Raises OSError, RuntimeError or ValueError when there is nothing to listen with.
        """
        if not standing:
            self._enter("events", "")
            while not self._stopping.wait(limits.EVENT_CHECK_MS / 1000):
                if self._standing():
                    return
            return
        folders = watched_folders(standing)
        renewal = time.monotonic() + limits.EVENT_RENEW_SECONDS
        self._doubt_at = 0.0  # all may have changed before the kernel begins to watch
        for paths in self._batches(folders):
            self._enter("events", "")
            self._doubt(limits.EVENT_DOUBT_SECONDS)
            has_new_folder = self._tell(paths)
            self._look(limits.EVENT_CHECK_MS / 1000)
            is_outdated = has_new_folder and not folders.is_recursive
            if has_new_folder:
                renewal = min(renewal, self._doubt_at)  # its watch may be one too many
            if is_outdated or self._standing() != standing or time.monotonic() >= renewal:
                return

    def _batches(self, folders: WatchedFolders) -> Iterator[list[str]]:
        is_watching = False
        try:
            for batch in _watch(folders, self._stopping):
                is_watching = True
                yield batch
        except RuntimeError as error:
            # Only one that never began is refused, but for a name it may end at once.
            if not (is_watching or _is_of_a_name(error)):
                raise
            self._stopping.wait(limits.EVENT_CHECK_MS / 1000)
            self._doubt_at = 0.0
            yield []

    def _tell(self, paths: Iterable[str]) -> bool:
        """Name files alone: of a directory that appeared, those that are in it by now.

        Return whether there is one.
        """
        files: list[str] = []
        has_new_folder = False
        for path in paths:
            if _is_folder(path):
                has_new_folder = True
                files.extend(files_below(path))
            else:
                files.append(path)
        if files:
            self._on_paths(files)
        return has_new_folder

    def _poll(self, reason: str, standing: Standing) -> None:
        """Look at the followed files often and sweep now and then, for a minute or so."""
        if self._enter("polling", reason):
            _log.warning("no file events, looking at the files instead: %s", reason)
        until = time.monotonic() + limits.EVENT_RETRY_SECONDS
        self._doubt_at = 0.0
        while time.monotonic() < until and not self._stopping.wait(limits.POLL_SECONDS):
            self._look(0.0)
            self._doubt(limits.POLL_SWEEP_SECONDS)
            if self._standing() != standing:
                return

    def _look(self, interval: float) -> None:
        """Look at the followed files, unless that was done within ``interval`` seconds."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + interval
            changed = self._followed.changed()
            if changed:
                self._on_paths(changed)

    def _doubt(self, interval: float) -> None:
        """Have everything swept, unless that was done within ``interval`` seconds."""
        now = time.monotonic()
        if now >= self._doubt_at:
            self._doubt_at = now + interval
            self._on_doubt()

    def _enter(self, mode: Mode, reason: str) -> bool:
        is_new = (mode, reason) != (self.mode, self.reason)
        self.mode, self.reason = mode, reason
        return is_new


def _watch(folders: WatchedFolders, stopping: Event) -> Iterator[list[str]]:
    """Yield paths that changed, and nothing now and then, until ``stopping`` is set.

    Raises one of _REFUSALS at once when there is no watcher to be had.
    """
    if not folders.paths:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    from watchfiles import watch  # noqa: PLC0415 - never delays the start

    changes = watch(
        *folders.paths,
        watch_filter=None,
        recursive=folders.is_recursive,
        debounce=limits.EVENT_GROUP_MS,
        step=limits.EVENT_STEP_MS,
        stop_event=stopping,
        rust_timeout=limits.EVENT_CHECK_MS,
        yield_on_timeout=True,
        raise_interrupt=False,
        force_polling=False,
        # What it would ignore is every refusal, that of the watch limit too.
        ignore_permission_denied=False,
    )
    return ([path for _, path in batch] for batch in changes)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


def _is_folder(path: str) -> bool:
    """Whether it is a directory itself; a link to one is none (behaviour B2)."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _is_of_a_name(error: Exception) -> bool:
    """Whether something happened to a file whose name is not UTF-8, which ends the watcher."""
    return str(error).startswith("Unable to decode path")


def _reason(error: Exception) -> str:
    """Say why, without the paths that watchfiles adds."""
    if isinstance(error, OSError):
        return error.strerror or "the watch limit is reached"
    return _PATHS.split(str(error))[0]


def _is_silent(path: str) -> bool:
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return False
    best, kind = "", ""
    for mount in mounts:
        point, name = mount.split(" ")[1:3]
        point = point.replace("\\040", " ")
        if len(point) >= len(best) and f"{path}/".startswith(f"{point.rstrip('/')}/"):
            best, kind = point, name
    return kind.split(".")[0] in _SILENT_FILE_SYSTEMS or kind.startswith("nfs")
