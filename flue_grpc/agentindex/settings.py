"""What an AgentIndex is opened with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flue_grpc.limits import (
    PAGE_FILE_BYTES,
    PAGE_MESSAGE_TEXT_BYTES,
    SNIPPET_CODE_POINTS,
    SWEEP_INTERVAL_SECONDS,
    SWEEP_WORKER_BYTES,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """How much of a transcript one answer shows (behaviour B1).

    ``page_file_bytes`` is the part of the file that a page reads, ``message_text_bytes``
    the text of a message on it, ``snippet_code_points`` the context on each side of a hit.
    """

    page_file_bytes: int = PAGE_FILE_BYTES
    message_text_bytes: int = PAGE_MESSAGE_TEXT_BYTES
    snippet_code_points: int = SNIPPET_CODE_POINTS


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Where the transcripts and the index lie, and how the sweep behaves.

    ``home`` is a directory, ``directory`` holds the index files of all homes. ``env``
    holds the variables by which the tools move their directories; it is empty for a
    home that was named explicitly. ``sweep_interval`` is in seconds, ``worker_bytes``
    what may be dirty before a sweep leaves this process.
    """

    home: str
    directory: Path
    env: Mapping[str, str] = field(default_factory=dict)
    ranked: bool = True
    sweep_interval: float = SWEEP_INTERVAL_SECONDS
    worker_bytes: int = SWEEP_WORKER_BYTES
    reading: ReadLimits = field(default_factory=ReadLimits)
