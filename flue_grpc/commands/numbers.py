"""Numbers that people write as flags, within what the wire can carry."""

from __future__ import annotations

import argparse
from typing import Final

_INT32_MAX: Final = 2**31 - 1  # of limits
_INT64_MAX: Final = 2**63 - 1  # of offsets and ids


def natural(text: str) -> int:
    """Read how many, 0 too."""
    return _within(0, _INT32_MAX, text)


def positive(text: str) -> int:
    """Read how many, at least one."""
    return _within(1, _INT32_MAX, text)


def limit(text: str) -> int:
    """Read how many at most; what is below 0 is for the server to refuse."""
    return _within(-_INT32_MAX, _INT32_MAX, text)


def offset(text: str) -> int:
    """Read a place in a file, in bytes."""
    return _within(0, _INT64_MAX, text)


def entry_id(text: str) -> int:
    """Read the id of a memory entry; whether there is one is for the server to say."""
    return _within(-_INT64_MAX, _INT64_MAX, text)


def _within(least: int, most: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from error
    if number < least:
        raise argparse.ArgumentTypeError(f"at least {least} is needed")
    if number > most:
        raise argparse.ArgumentTypeError(f"at most {most} is possible")
    return number
