"""Numbers that people write as flags."""

from __future__ import annotations

import argparse


def natural(text: str) -> int:
    """Read how many, 0 too."""
    return _at_least(0, text)


def positive(text: str) -> int:
    """Read how many, at least one."""
    return _at_least(1, text)


def _at_least(least: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from error
    if number < least:
        raise argparse.ArgumentTypeError(f"at least {least} is needed")
    return number
