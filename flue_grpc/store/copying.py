"""Copies a database into one new file, whole or not at all."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final, Protocol

import apsw

from flue_grpc import limits, private_files
from flue_grpc.errors import UnusableDatabaseError
from flue_grpc.store import files
from flue_grpc.store.connections import first_value, open_writer
from flue_grpc.store.sqlite_errors import in_words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flue_grpc.store.values import StoreSettings

_PARTIAL: Final = re.escape(files.PARTIAL_SUFFIX) + "[0-9]+-[0-9a-f]{8}"


class Progress(Protocol):
    """Hears how far long work has come, in units of its own."""

    def __call__(self, done: int, total: int, /) -> None:
        """Hear that ``done`` of ``total`` are done."""


def silent(_done: int, _total: int) -> None:
    """Tell nobody."""


def copy_database(
    source: apsw.Connection, destination: Path, settings: StoreSettings, progress: Progress = silent
) -> None:
    """Copy what ``source`` sees now into a new file, 0600, complete or not there at all.

    The copy is one file in rollback mode, so it needs none beside it. Raises
    UnusableDatabaseError when the destination exists or cannot be written.
    """
    with unfinished(destination) as partial:
        fill(source, partial, settings, progress)
        _link(partial, destination)


def fill(
    source: apsw.Connection, partial: Path, settings: StoreSettings, progress: Progress = silent
) -> None:
    """Copy what ``source`` sees now into an empty file, durable when it returns.

    Raises UnusableDatabaseError when the file cannot be written.
    """
    try:
        with closing(open_writer(partial, settings)) as target:
            _copy(source, target, progress)
            target.pragma("journal_mode", "delete")
    except apsw.Error as error:
        reason = in_words(error, partial.parent)
        raise UnusableDatabaseError(f"{partial} cannot be written: {reason}") from error
    with partial.open("rb") as file:
        os.fsync(file.fileno())


def _copy(source: apsw.Connection, target: apsw.Connection, progress: Progress) -> None:
    # A transaction of its own fixes what is copied: writers beside it never start it over.
    with source:
        first_value(source, "SELECT count(*) FROM sqlite_schema")
        with target.backup("main", source, "main") as copying:
            while not copying.done:
                copying.step(limits.BACKUP_PAGES)
                progress(copying.page_count - copying.remaining, copying.page_count)


@contextmanager
def unfinished(destination: Path, source: Path | None = None) -> Iterator[Path]:
    """Give an empty file beside ``destination`` under a name of its own, gone at the end.

    What a killed process left under such a name is removed first, but for ``source``.
    Raises UnusableDatabaseError when the file cannot be made.
    """
    partial = files.with_suffix(
        destination, f"{files.PARTIAL_SUFFIX}{os.getpid()}-{secrets.token_hex(4)}"
    )
    try:
        _remove_abandoned(destination, source)
        lock = private_files.create_private_file(partial)
    except OSError as error:
        raise UnusableDatabaseError(f"{destination} cannot be created: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield partial
    finally:
        files.remove(partial)
        # Not before SQLite has closed it: that would drop the locks that it holds.
        os.close(lock)


def _remove_abandoned(destination: Path, source: Path | None) -> None:
    """Remove the unfinished files of ``destination`` that no process holds any more."""
    name = re.compile(re.escape(destination.name) + _PARTIAL)
    for entry in destination.parent.iterdir():
        is_ours = name.fullmatch(entry.name) and not (source and entry.samefile(source))
        if is_ours and _is_abandoned(entry):
            files.remove(entry)


def _is_abandoned(partial: Path) -> bool:
    try:
        descriptor = os.open(partial, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _link(partial: Path, destination: Path) -> None:
    try:
        files.give_name(partial, destination)
    except FileExistsError as error:
        raise UnusableDatabaseError(
            f"{destination} exists; choose another name, or remove it first"
        ) from error
    partial.unlink(missing_ok=True)
    files.sync_directory(destination.parent)
