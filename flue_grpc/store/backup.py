"""Backup beside a running server, and restore in the place of a database at rest."""

from __future__ import annotations

import logging
import shutil
from contextlib import closing
from typing import TYPE_CHECKING, Final

import apsw

from flue_grpc.errors import UnusableDatabaseError
from flue_grpc.store import files, opening
from flue_grpc.store.connections import first_value, open_beside, open_kept, open_writer
from flue_grpc.store.copying import Progress, copy_database, fill, silent, unfinished

if TYPE_CHECKING:
    from pathlib import Path

    from flue_grpc.store.values import StoreSettings

_LOG: Final = logging.getLogger(__name__)


def backup(
    path: Path, destination: Path, settings: StoreSettings, progress: Progress = silent
) -> None:
    """Copy the database beside a running server: consistent, one file, 0600.

    Raises UnusableDatabaseError when there is no database, or when the
    destination exists or cannot be written.
    """
    if opening.inspect(path, settings).kind == "empty":
        raise UnusableDatabaseError(f"{path} is not there yet, or empty")
    files.refuse_name_in_use(destination, path)
    try:
        with closing(open_beside(path, settings)) as connection:
            copy_database(connection, destination, settings, progress)
    except apsw.Error as error:
        raise opening.unusable(path, error) from error


def restore(
    source: Path, path: Path, settings: StoreSettings, progress: Progress = silent
) -> Path | None:
    """Put a backup in the place of the database; return where the replaced one is kept.

    The caller holds the lock of ``path``. The source is checked first; it and a log
    beside it, whose writes are restored too, are left as they are. One of an older
    version is migrated at the next start. Raises UnusableDatabaseError when it is
    damaged or not a Store's; then nothing was replaced.
    """
    refuse_damaged(source, settings)
    with unfinished(path, source) as restored:
        try:
            with closing(open_kept(source, settings)) as connection:
                fill(connection, restored, settings, progress)
        except apsw.Error as error:
            raise opening.unusable(source, error) from error
        kept = _set_aside(path, settings) if path.exists() else None
        restored.replace(path)
        files.sync_directory(path.parent)
    return kept


def refuse_damaged(source: Path, settings: StoreSettings) -> None:
    """Raise UnusableDatabaseError unless the file is a sound database of the Store."""
    if not source.exists() or opening.inspect(source, settings).kind == "empty":
        raise UnusableDatabaseError(f"{source} is not a database of the Store")
    try:
        with closing(open_kept(source, settings)) as connection:
            verdict = first_value(connection, "PRAGMA integrity_check(1)")
    except apsw.Error as error:
        raise opening.unusable(source, error) from error
    if verdict != "ok":
        raise UnusableDatabaseError(f"{source} is damaged: {verdict}")


def _set_aside(path: Path, settings: StoreSettings) -> Path:
    """Keep the database under another name, whole, with its log if that cannot be folded in."""
    files.tighten(path)
    kept = files.free_name(files.with_suffix(path, files.REPLACED_SUFFIX))
    kept_log = files.with_suffix(kept, files.LOG_SUFFIX)
    log = files.with_suffix(path, files.LOG_SUFFIX)
    if log.exists():
        # SQLite may throw away a log that it cannot use, and a person might not.
        shutil.copy2(log, kept_log)
    try:
        with closing(open_writer(path, settings)) as connection:
            connection.pragma("journal_mode", "delete")
        kept_log.unlink(missing_ok=True)
    except apsw.Error:
        _LOG.warning("the replaced database cannot be opened; it is kept as it is")
    files.give_name(path, kept)
    for companion in files.companions(path):
        # A log left beside the restored file would be replayed into it.
        companion.unlink()
    return kept
