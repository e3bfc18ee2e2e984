"""Where the transcripts of each tool are, and whether they can be read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from flue_grpc.agentindex.adapters.registry import ADAPTERS
from flue_grpc.agentindex.discovery import discover, real_roots
from flue_grpc.doctor.findings import in_bytes, note, ok, problem
from flue_grpc.render.amounts import counted
from flue_grpc.services import index_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flue_grpc.agentindex.discovery import RealRoot
    from flue_grpc.config import Configuration
    from flue_grpc.doctor.findings import Finding


def roots_of(configuration: Configuration, env: Mapping[str, str]) -> tuple[RealRoot, ...]:
    """Find the roots that a server with these settings would read."""
    settings = index_settings(configuration, env)
    return real_roots(ADAPTERS, settings.home, settings.env)


def transcripts(roots: tuple[RealRoot, ...]) -> Iterator[Finding]:
    """Count the files of transcripts below each root; nothing but directories is opened."""
    for root in roots:
        yield _root(root)


def _root(root: RealRoot) -> Finding:
    subject, path = root.place.tool, root.place.root
    if not os.path.isdir(path):  # noqa: PTH112  (roots are strings: any bytes may be in them)
        return note(subject, f"{path} is not there")
    if not os.access(path, os.R_OK | os.X_OK):
        return problem(subject, f"{path} cannot be read", "run as the user whose home it is")
    found = discover((root,), {}).dirty
    closed = _closed_folders(path)
    if closed:
        return problem(
            subject,
            f"{path}: what is in {len(closed)} of its folders cannot be read",
            f"see the owner and mode of them, such as {closed[0]}",
        )
    unreadable = [file.path for file in found if not os.access(file.path, os.R_OK)]
    if unreadable:
        return problem(
            subject,
            f"{path}: {len(unreadable)} of {counted(len(found), 'file')} cannot be read",
            f"see the owner and mode of them, such as {unreadable[0]}",
        )
    size = sum(file.key.size for file in found)
    return ok(subject, f"{path}: {counted(len(found), 'file')}, {in_bytes(size)}")


def _closed_folders(path: str) -> list[str]:
    closed: list[str] = []

    def note_refusal(error: OSError) -> None:
        if isinstance(error, PermissionError):
            closed.append(str(error.filename))

    for _ in os.walk(path, onerror=note_refusal):
        pass
    return closed
