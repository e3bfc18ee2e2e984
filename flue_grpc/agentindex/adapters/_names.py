"""The short texts of a summary: names, prompts, places (formats §5.2, §5.4, §8.12)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from flue_grpc.agentindex.adapters._pieces import PLACEHOLDERS, USER_TEXT, Piece
from flue_grpc.limits import FIRST_PROMPT_BYTES, LABEL_BYTES, TITLE_CODE_POINTS
from flue_grpc.text.clean import REPLACEMENT, cut_bytes, first_line, sanitize

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_PATH_BYTES: Final = 4096  # PATH_MAX: no longer directory can be entered


def first_prose(pieces: Sequence[Piece], request: Callable[[str], str] = str) -> str:
    """Return the prompt among the pieces of one record, as a summary keeps it.

    ``request`` finds it in a text. A picture's placeholder counts only where no text
    stands beside it (formats §8.13).
    """
    prompt = ""
    for piece in pieces:
        if piece.shape is USER_TEXT:
            text = prompt_of(request(piece.render(piece.body)))
            if text and text not in PLACEHOLDERS:
                return text
            prompt = prompt or text
    return prompt


def prompt_of(text: str) -> str:
    """Cut a prompt to what a summary keeps of it (formats §8.12)."""
    return cut_bytes(sanitize(text).strip(), FIRST_PROMPT_BYTES)


def title_of(text: str) -> str:
    """Return the first line that shows something (formats §8.12)."""
    return first_line(sanitize(text), TITLE_CODE_POINTS)


def label_of(text: str) -> str:
    """Cut a short name, such as a model or a branch, that should never be long."""
    return cut_bytes(sanitize(text), LABEL_BYTES)


def directory_of(cwd: str) -> str:
    """Return a working directory, empty when it cannot be one: damaged or too long."""
    clean = sanitize(cwd)
    is_sound = REPLACEMENT not in clean and len(clean.encode()) <= _PATH_BYTES
    return clean if is_sound else ""


def is_id(text: str) -> bool:
    """Say whether a text may name a session (behaviour B5)."""
    return _ID.fullmatch(text) is not None
