"""Reads the value of a setting from a string or from TOML.

Each function returns the value or raises ValueError with what would be right.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_TRUE: Final = frozenset(("1", "true", "yes", "on"))
_FALSE: Final = frozenset(("0", "false", "no", "off"))
_UNITS: Final = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_LARGEST: Final = 2**31 - 1  # what a limit of the contract can say
_LONGEST_SECONDS: Final = 86_400.0 * 365


def flag(value: object) -> bool:
    """Read true or false."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    raise ValueError("true or false")


def count(value: object) -> int:
    """Read a whole number of at least 1."""
    number = _whole(value, "a whole number of at least 1")
    if not 1 <= number <= _LARGEST:
        raise ValueError("a whole number of at least 1")
    return number


def count_up_to(most: int) -> Callable[[object], int]:
    """Make a reader of whole numbers from 1 to ``most``."""

    def read(value: object) -> int:
        number = count(value)
        if number > most:
            raise ValueError(f"a whole number of at most {most}")
        return number

    return read


def size(value: object) -> int:
    """Read a number of bytes: ``65536``, ``64KiB``, ``2 MiB``."""
    wanted = "a size of at least 1 byte, such as 65536 or 64KiB"
    if isinstance(value, str):
        digits = value.rstrip("BGKMi").strip()
        factor = _UNITS.get(value[len(digits) :].strip(), 0)
        return _within(_whole(digits, wanted) * factor, wanted)
    return _within(_whole(value, wanted), wanted)


def size_up_to(most: int) -> Callable[[object], int]:
    """Make a reader of sizes of at most ``most`` bytes."""

    def read(value: object) -> int:
        number = size(value)
        if number > most:
            raise ValueError(f"a size of at most {most} bytes")
        return number

    return read


def seconds(value: object) -> float:
    """Read a time of more than 0 seconds, fractions allowed."""
    wanted = "a number of seconds greater than 0"
    try:
        number = 0.0 if isinstance(value, bool) else float(value)  # type: ignore[arg-type]  # caught
    except (TypeError, ValueError) as error:
        raise ValueError(wanted) from error
    if not 0 < number <= _LONGEST_SECONDS:
        raise ValueError(wanted)
    return number


def path(value: object) -> Path:
    """Read a path; ``~`` is the home, a relative one is taken from here."""
    text = str(value) if isinstance(value, (str, Path)) else ""
    if not text or "\0" in text:
        raise ValueError("a path")
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:
        raise ValueError("a path whose home directory is known") from error


def optional_path(value: object) -> Path | None:
    """Read a path as ``path`` does; an empty string is none."""
    return None if value == "" else path(value)


def one_line(value: object) -> str:
    """Read one line of text, which may be empty."""
    if isinstance(value, str) and (value.isprintable() or not value):
        return value
    raise ValueError("one line of text")


def strings(value: object) -> tuple[str, ...]:
    """Read one string, several with commas between them, or a list of strings."""
    parts = value.split(",") if isinstance(value, str) else value
    if isinstance(parts, (list, tuple)):
        texts = tuple(part.strip() for part in parts if isinstance(part, str) and part.strip())
        if len(texts) == len(parts):
            return texts
    raise ValueError("a string or a list of strings, none empty")


@dataclass(frozen=True, slots=True)
class Choice:
    """A reader of one of a few words."""

    allowed: tuple[str, ...]

    def __call__(self, value: object) -> str:
        """Return the word, or raise ValueError with those that would be right."""
        if isinstance(value, str) and value in self.allowed:
            return value
        raise ValueError(" or ".join(self.allowed))


def choice(*allowed: str) -> Choice:
    """Make a reader of one of a few words."""
    return Choice(allowed)


def _whole(value: object, wanted: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    raise ValueError(wanted)


def _within(number: int, wanted: str) -> int:
    if not 1 <= number < 2**63:
        raise ValueError(wanted)
    return number
