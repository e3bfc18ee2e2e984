"""Copies a database into one new file, whole or not at all."""

from __future__ import annotations

import os
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Protocol

import apsw

from flue_grpc import limits, private_files
from flue_grpc.errors import UnusableDatabaseError
from flue_grpc.store import files
from flue_grpc.store.connections import first_value, open_writer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flue_grpc.store.values import StoreSettings


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
    with _finished_whole(destination) as partial:
        try:
            with closing(open_writer(partial, settings)) as target:
                _copy(source, target, progress)
                target.pragma("journal_mode", "delete")
        except apsw.Error as error:
            raise UnusableDatabaseError(f"{destination} cannot be written: {error}") from error


def _copy(source: apsw.Connection, target: apsw.Connection, progress: Progress) -> None:
    # A transaction of its own fixes what is copied: writers beside it never start it over.
    with source:
        first_value(source, "SELECT count(*) FROM sqlite_schema")
        with target.backup("main", source, "main") as copying:
            while not copying.done:
                copying.step(limits.BACKUP_PAGES)
                progress(copying.page_count - copying.remaining, copying.page_count)


@contextmanager
def _finished_whole(destination: Path) -> Iterator[Path]:
    """Give a file to fill that becomes ``destination`` at the end, unless that is taken."""
    partial = files.with_suffix(destination, f".partial-{os.getpid()}")
    try:
        os.close(private_files.create_private_file(partial))
    except OSError as error:
        raise UnusableDatabaseError(f"{destination} cannot be created: {error.strerror}") from error
    try:
        yield partial
        _link(partial, destination)
    finally:
        files.remove(partial)


def _link(partial: Path, destination: Path) -> None:
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    try:
        files.give_name(partial, destination)
    except FileExistsError as error:
        raise UnusableDatabaseError(
            f"{destination} exists; choose another name, or remove it first"
        ) from error
    files.sync_directory(destination.parent)
