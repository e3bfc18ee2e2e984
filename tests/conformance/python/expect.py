"""Patterns: what a value has to look like (README.md of this directory)."""

from __future__ import annotations

import json
import re
from typing import Any

_DEFAULTS: tuple[Any, ...] = (None, "", "0", 0, False, [])


class MismatchError(AssertionError):
    """Something is not as the scenario says."""


def look_up(value: Any, path: str) -> Any:
    """Follow a path such as ``items.0.id``; None when there is nothing."""
    for name in path.split("."):
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def match(path: str, pattern: Any, value: Any) -> None:
    """Raise MismatchError unless ``value`` is as ``pattern`` says."""
    if isinstance(pattern, dict):
        _match_object(path, pattern, value)
    elif isinstance(pattern, list) and isinstance(value, list):
        if len(pattern) != len(value):
            raise _differs(path, pattern, value)
        for number, (wanted, found) in enumerate(zip(pattern, value, strict=True)):
            match(f"{path}.{number}", wanted, found)
    elif not (_same(pattern, value) or (_is_default(pattern) and _is_default(value))):
        raise _differs(path, pattern, value)


def rising(items: list[Any], field: str) -> None:
    """Raise MismatchError unless ``field`` rises strictly from item to item."""
    values = [int(look_up(item, field) or 0) for item in items]
    if values != sorted(set(values)):
        raise MismatchError(f"items: {field} does not rise: {values}")


def _match_object(path: str, pattern: dict[str, Any], value: Any) -> None:
    if "$matches" in pattern:
        holds = isinstance(value, str) and re.search(pattern["$matches"], value) is not None
    elif "$set" in pattern:
        holds = not _is_default(value)
    elif "$length" in pattern:
        holds = len(value or "") == pattern["$length"]
    else:
        for name, wanted in pattern.items():
            match(f"{path}.{name}", wanted, look_up(value, name))
        return
    if not holds:
        raise _differs(path, pattern, value)


def _same(pattern: Any, value: Any) -> bool:
    if isinstance(pattern, bool) or isinstance(value, bool):
        return pattern is value
    return bool(pattern == value)


def _is_default(value: Any) -> bool:
    return any(_same(default, value) for default in _DEFAULTS)


def _differs(path: str, pattern: Any, value: Any) -> MismatchError:
    found, wanted = (json.dumps(v, ensure_ascii=False)[:300] for v in (value, pattern))
    return MismatchError(f"{path} is {found}, not {wanted}")
