"""Commands that a person can paste into a shell."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from flue.agentindex.v1 import agent_index_pb2 as pb

_PLAIN: Final = frozenset("/._=:,+@ ")  # beside letters and digits


def quote(word: str) -> str:
    r"""Quote one word for every POSIX shell; what does not print as what ``printf`` makes of it.

    So what is shown is what is run, and nothing of it acts on the terminal. ``$'\x01'``
    is not POSIX: in dash a quote inside it ends it. Raises ValueError for a word that
    no shell can make in one line: one with NUL, or one whose last character ends a line.
    """
    if word.isprintable():
        return shlex.quote(word)
    if "\0" in word or word.endswith("\n"):
        raise ValueError("no shell takes such a word from one line")
    return "\"$(printf '" + "".join(_escaped(character) for character in word) + "')\""


def resume_command(resume: pb.Resume) -> str:
    """Compose the line that picks a session up: its directory, then its command.

    Raises ValueError as ``quote`` does.
    """
    words = [resume.command, *resume.args]
    return f"cd -- {quote(resume.dir)} && " + " ".join(quote(word) for word in words)


def _escaped(character: str) -> str:
    if character in _PLAIN or (character.isalnum() and character.isprintable()):
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape"))
