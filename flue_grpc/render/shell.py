"""Commands that a person can paste into a shell."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flue.agentindex.v1 import agent_index_pb2 as pb


def quote(word: str) -> str:
    """Quote one word for bash, zsh and sh; unprintable characters as hexadecimal escapes.

    So what is shown is what is run, and nothing of it acts on the terminal.
    """
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(_escaped(character) for character in word) + "'"


def resume_command(resume: pb.Resume) -> str:
    """Compose the line that picks a session up: its directory, then its command."""
    words = [resume.command, *resume.args]
    return f"cd -- {quote(resume.dir)} && " + " ".join(quote(word) for word in words)


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode())
