"""Hearing of changed transcripts: from the kernel, or by looking where it tells nothing.

The kernel's watches may run out and some file systems tell of no change; then the
followed files are looked at often, all others by sweeps. Either way sweeps go on in
the background, so an event that was lost is late and not missing.
"""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, Literal

from flue_grpc import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from flue_grpc.agentindex.followed_files import FollowedFiles

Mode = Literal["off", "events", "polling"]

_log = logging.getLogger(__name__)
_MOUNTS: Final = Path("/proc/self/mounts")
# These show changes made on another machine to nobody, or have no events at all.
_SILENT_FILE_SYSTEMS: Final = ("9p", "afs", "cifs", "fuse", "nfs", "smb3", "vboxsf", "virtiofs")


class FileEvents:
    """One thread that tells ``on_paths`` which files changed.

    ``on_paths`` gets real paths, of files below the directories that are there, were
    there, or have just become visible. ``on_doubt`` is told that something may have been
    missed: sweep everything.
    """

    def __init__(
        self,
        directories: Sequence[str],
        followed: FollowedFiles,
        on_paths: Callable[[Iterable[str]], None],
        on_doubt: Callable[[], None],
    ) -> None:
        """Be ready; ``directories`` are real paths and may be missing for now."""
        self._directories = directories
        self._followed = followed
        self._on_paths = on_paths
        self._on_doubt = on_doubt
        self._stopping = Event()
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
            present = [path for path in self._directories if Path(path).is_dir()]
            try:
                self._listen_or_poll(present)
            except Exception:  # noqa: BLE001 - a thread that ended would make every event late
                _log.exception("listening to file events failed; it begins again")
                self._stopping.wait(limits.POLL_SWEEP_SECONDS)

    def _listen_or_poll(self, present: Sequence[str]) -> None:
        silent = next((path for path in present if _is_silent(path)), None)
        if silent is not None:
            self._poll("the file system tells of no changes", present)
            return
        try:
            self._listen(present)
        except OSError as error:
            if present == [path for path in present if Path(path).is_dir()]:
                self._poll(error.strerror or "the watch limit is reached", present)

    def _listen(self, present: Sequence[str]) -> None:
        """Hand events over until a directory appears or vanishes, or for a minute or so.

        Raises OSError.
        """
        if not present:
            self._enter("events", "")
            while not self._stopping.wait(limits.EVENT_CHECK_MS / 1000):
                if self._has_moved(present):
                    return
            return
        is_sure = False
        doubt_at = time.monotonic() + limits.EVENT_DOUBT_SECONDS
        for paths in self._batches(present):
            if self._enter("events", "") or not is_sure:
                # Only now is it certain that the kernel watches: before, all may have changed.
                self._on_doubt()
                is_sure = True
            if paths:
                self._tell(paths)
            elif self._has_moved(present) or time.monotonic() >= doubt_at:
                return

    def _batches(self, present: Sequence[str]) -> Iterator[list[str]]:
        from watchfiles import watch  # noqa: PLC0415 - never delays the start

        changes = watch(
            *present,
            watch_filter=None,
            debounce=limits.EVENT_GROUP_MS,
            step=limits.EVENT_STEP_MS,
            stop_event=self._stopping,
            rust_timeout=limits.EVENT_CHECK_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=False,
            ignore_permission_denied=True,
        )
        for batch in changes:
            yield [path for _, path in batch]

    def _tell(self, paths: Iterable[str]) -> None:
        """Name files alone: of a directory that appeared, those that are in it by now."""
        files: list[str] = []
        for path in paths:
            if Path(path).is_dir():
                files.extend(_files_below(path))
            else:
                files.append(path)
        self._on_paths(files)

    def _poll(self, reason: str, present: Sequence[str]) -> None:
        """Look at the followed files often and sweep now and then, for a minute or so."""
        if self._enter("polling", reason):
            _log.warning("no file events, looking at the files instead: %s", reason)
        until = time.monotonic() + limits.EVENT_RETRY_SECONDS
        sweep_at = 0.0
        while time.monotonic() < until and not self._stopping.wait(limits.POLL_SECONDS):
            changed = self._followed.changed()
            if changed:
                self._on_paths(changed)
            if time.monotonic() >= sweep_at:
                self._on_doubt()
                sweep_at = time.monotonic() + limits.POLL_SWEEP_SECONDS
            if self._has_moved(present):
                return

    def _has_moved(self, present: Sequence[str]) -> bool:
        return any(Path(path).is_dir() != (path in present) for path in self._directories)

    def _enter(self, mode: Mode, reason: str) -> bool:
        is_new = (mode, reason) != (self.mode, self.reason)
        self.mode, self.reason = mode, reason
        return is_new


def _files_below(directory: str) -> Iterator[str]:
    for folder, _, names in os.walk(directory):
        for name in names:
            yield os.path.join(folder, name)  # noqa: PTH118 - a walk of many names


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
