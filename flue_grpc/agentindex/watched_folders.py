"""What of the roots the kernel's watcher is given: it follows links, and we never do."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class WatchedFolders(msgspec.Struct, frozen=True):
    """Directories to watch, each with all that is below it or each by itself."""

    paths: tuple[str, ...]
    is_recursive: bool


def watched_folders(roots: Iterable[str]) -> WatchedFolders:
    """Return ``roots``, or those directories below them that can be watched.

    The latter where one is a link (behaviour B2): one to ``/`` would have the watcher
    walk the whole disk; and where one must not be read or has a name that is not UTF-8,
    which would end the watcher.
    """
    tops = tuple(roots)
    folders: list[str] = []
    is_recursive = True
    pending = list(tops)
    while pending:
        folder = pending.pop()
        try:
            below, has_traps = _below(folder)
        except PermissionError:
            is_recursive = False
        except OSError:
            continue  # it vanished while we looked
        else:
            is_recursive = is_recursive and not has_traps
            folders.append(folder)
            pending += below
    return WatchedFolders(tops if is_recursive else tuple(folders), is_recursive)


def _below(folder: str) -> tuple[list[str], bool]:
    """Return the folders in ``folder`` that can be watched, and whether others look like it.

    Raises OSError.
    """
    below: list[str] = []
    has_traps = False
    for entry in _scan(folder):
        if entry.is_symlink():
            has_traps = has_traps or _leads_to_folder(entry)
        elif entry.is_dir(follow_symlinks=False):
            if _is_utf8(entry.name):
                below.append(entry.path)
            else:
                has_traps = True
    return below, has_traps


def files_below(folder: str) -> Iterator[str]:
    """Yield every path below ``folder`` that is no directory; links are not followed."""
    pending = [folder]
    while pending:
        with suppress(OSError):
            for entry in _scan(pending.pop()):
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    yield entry.path


def _scan(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        yield from entries


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_utf8(name: str) -> bool:
    """Whether the watcher can be told of it; in others no transcript is looked for."""
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)
