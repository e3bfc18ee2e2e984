"""What one check found."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Level(StrEnum):
    """How a finding bears on the service."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


class Finding(msgspec.Struct, frozen=True):
    """One line of the report; ``advice`` says what to do, empty when nothing is."""

    subject: str
    level: Level
    text: str
    advice: str = ""


def ok(subject: str, text: str) -> Finding:
    """Report what is as it should be."""
    return Finding(subject, Level.OK, text)


def note(subject: str, text: str, advice: str = "") -> Finding:
    """Report what is worth knowing and harms nothing."""
    return Finding(subject, Level.NOTE, text, advice)


def problem(subject: str, text: str, advice: str) -> Finding:
    """Report what keeps something from working."""
    return Finding(subject, Level.PROBLEM, text, advice)


def in_bytes(size: int) -> str:
    """Write a size for people: three digits and a binary unit."""
    amount, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:  # noqa: PLR2004  (the step between the units)
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.3g} {unit}"
