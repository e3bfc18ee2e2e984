"""What of the roots the kernel's watcher is given: it follows links, and we never do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class WatchedFolders(msgspec.Struct, frozen=True):
    """Directories to watch, each with all that is below it or each by itself."""

    paths: tuple[str, ...]
    is_recursive: bool


def watched_folders(roots: Iterable[str]) -> WatchedFolders:
    """Return ``roots``, or every directory below them where one is a link (behaviour B2).

    One link to ``/`` would otherwise have the watcher walk the whole disk.
    """
    tops = tuple(roots)
    folders: list[str] = []
    has_links = False
    pending = list(tops)
    while pending:
        folder = pending.pop()
        folders.append(folder)
        for entry in _entries(folder):
            if entry.is_symlink():
                has_links = has_links or _leads_to_folder(entry)
            elif entry.is_dir(follow_symlinks=False) and _is_utf8(entry.name):
                pending.append(entry.path)
    return WatchedFolders(tuple(folders) if has_links else tops, not has_links)


def files_below(folder: str) -> Iterator[str]:
    """Yield every path below ``folder`` that is no directory; links are not followed."""
    pending = [folder]
    while pending:
        for entry in _entries(pending.pop()):
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            else:
                yield entry.path


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_utf8(name: str) -> bool:
    """Whether the watcher can be told of it; in others no transcript is looked for."""
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)
