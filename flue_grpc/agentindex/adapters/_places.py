"""Names of directories and files, as all adapters judge them (formats §1.8)."""

from __future__ import annotations

import os
from typing import Final

_SUFFIX: Final = ".jsonl"


def directory_from(home: str, setting: str | None, *default: str) -> str:
    """Return the absolute directory that a setting names, or ``default`` below ``home``.

    ``~`` is ``home``; a relative path is taken from there too.
    """
    if not setting:
        return os.path.join(home, *default)  # noqa: PTH118 - may hold any bytes
    if setting == "~" or setting.startswith("~/"):
        setting = setting[2:]
    return os.path.normpath(os.path.join(home, setting))  # noqa: PTH118


def stem_of(name: str) -> str:
    """Return a file's name without ``.jsonl``, empty when it cannot be a transcript.

    Hidden and temporary names are none, nor are names that are not UTF-8.
    """
    stem = name.removesuffix(_SUFFIX)
    return stem if stem != name and is_plain(name) else ""


def is_plain(name: str) -> bool:
    """Say whether a name is neither hidden nor made of bytes that are not UTF-8."""
    return not name.startswith(".") and not any("\udc80" <= char <= "\udcff" for char in name)
