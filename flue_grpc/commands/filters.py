"""Flags that choose sessions, and the times and zones that people write."""

from __future__ import annotations

import argparse
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flue_grpc.client import Filter

WHERE_TO_LOOK: Final = "`flue-grpc doctor` says where transcripts are looked for"
_AGO: Final = re.compile(r"(\d{1,6})([hdw])")
_UNITS: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add the flags that choose sessions."""
    group = parser.add_argument_group("which sessions")
    group.add_argument(
        "--tool",
        action="append",
        default=[],
        choices=_KnownTools(),
        metavar="TOOL",
        help="such as claude",
    )
    group.add_argument("--cwd", type=directory, default="", help="of this working directory")
    group.add_argument(
        "--since", type=when, metavar="TIME", help="2026-03-01, a time, or 7d, 12h, 2w ago"
    )
    group.add_argument("--until", type=when, metavar="TIME", help="before this time")


def filters_of(arguments: argparse.Namespace) -> Filter:
    """Make the filter that the flags ask for."""
    from flue_grpc.client import Filter

    return Filter(
        tools=tuple(arguments.tool),
        cwd=arguments.cwd,
        since=arguments.since,
        until=arguments.until,
    )


def when(text: str) -> datetime:
    """Read a day, a time (this machine's zone unless it says another), or how long ago."""
    ago = _AGO.fullmatch(text)
    try:
        if ago:
            return datetime.now(UTC) - int(ago[1]) * _UNITS[ago[2]]
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 2026-03-01 or 7d") from error


def local_zone(environment: dict[str, str] | os._Environ[str] = os.environ) -> str:
    """Name this machine's time zone, UTC where it has no name."""
    name = environment.get("TZ", "").removeprefix(":")
    if name:
        return name
    try:
        target = str(Path("/etc/localtime").resolve())
    except OSError:
        return "UTC"
    _, found, name = target.partition("/zoneinfo/")
    return name if found else "UTC"


class _KnownTools:
    """The tools of the registry, which is imported when somebody asks for them."""

    def __iter__(self) -> Iterator[str]:
        from flue_grpc.agentindex.adapters.registry import ADAPTERS

        return (adapter.tool for adapter in ADAPTERS)

    def __contains__(self, name: str) -> bool:
        return name in tuple(self)


def directory(text: str) -> str:
    """Read a directory as a session recorded it: absolute, without ``..`` and a last slash.

    A relative one is where a process started there would be, so its links are resolved;
    those of an absolute one are as they were written. Nothing stays nothing.
    """
    if not text:
        return ""
    if not text.startswith("/"):
        return os.path.realpath(text)
    return os.path.normpath("/" + text.lstrip("/"))
