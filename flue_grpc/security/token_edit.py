"""Adding and removing tokens of a token file, whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from flue_grpc.errors import ConfigError
from flue_grpc.private_files import create_private_file
from flue_grpc.security.tokens import (
    HEADER,
    format_line,
    is_token_name,
    new_token,
    parse,
    read_token_file,
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
    text = _text(path) if path.exists() else HEADER
    if any(token.principal.name == name for token in parse(text).tokens):
        raise ConfigError(f"there is a token named {name} already")
    token = new_token()
    separator = "" if text.endswith("\n") else "\n"
    _replace(path, f"{text}{separator}{format_line(role, token, name)}\n")
    return token


def remove_token(path: Path, name: str) -> None:
    """Take every token of that name out of the file.

    Raises ConfigError when there is none, or the file cannot be read or written.
    """
    lines = _text(path).splitlines(keepends=True)
    kept = [line for line in lines if not _is_named(line, name)]
    if len(kept) == len(lines):
        raise ConfigError(f"there is no token named {name}")
    _replace(path, "".join(kept))


def _is_named(line: str, name: str) -> bool:
    return any(token.principal.name == name for token in parse(line).tokens)


def _text(path: Path) -> str:
    read_token_file(path)
    return path.read_text(encoding="ascii")


def _replace(path: Path, text: str) -> None:
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = create_private_file(new)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        new.replace(path)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise ConfigError(f"cannot write the token file {path}: {error.strerror}") from error
