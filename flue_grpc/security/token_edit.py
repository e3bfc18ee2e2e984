"""Adding and removing tokens of a token file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flue_grpc.errors import ConfigError
from flue_grpc.security.token_storage import editing, replace_token_file
from flue_grpc.security.tokens import (
    HEADER,
    format_line,
    is_token_name,
    new_token,
    parse,
    read_token_file,
    read_token_text,
)

if TYPE_CHECKING:
    from pathlib import Path

    from flue_grpc.security.roles import Principal, Role


def list_tokens(path: Path) -> tuple[Principal, ...]:
    """Name whose tokens the file holds; raises ConfigError when it cannot be read."""
    return tuple(token.principal for token in read_token_file(path).tokens)


def add_token(path: Path, role: Role, name: str) -> str:
    """Add a new token to the file, made when it is missing, and return it.

    Raises ConfigError when the name is taken or of bad form, or the file cannot
    be read or written.
    """
    if not is_token_name(name):
        raise ConfigError("a token's name is 1 to 64 letters, digits or characters of ._@:/-")
    with editing(path) as file:
        text = read_token_text(file) if file.exists() else HEADER
        if any(token.principal.name == name for token in parse(text).tokens):
            raise ConfigError(f"there is a token named {name} already")
        token = new_token()
        separator = "" if text.endswith("\n") else "\n"
        replace_token_file(file, f"{text}{separator}{format_line(role, token, name)}\n")
    return token


def remove_token(path: Path, name: str) -> None:
    """Take every token of that name out of the file.

    Raises ConfigError when there is none, or the file cannot be read or written.
    """
    with editing(path) as file:
        lines = read_token_text(file).splitlines(keepends=True)
        kept = [line for line in lines if not _is_named(line, name)]
        if len(kept) == len(lines):
            raise ConfigError(f"there is no token named {name}")
        replace_token_file(file, "".join(kept))


def _is_named(line: str, name: str) -> bool:
    return any(token.principal.name == name for token in parse(line).tokens)
