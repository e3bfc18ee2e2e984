"""Bearer tokens: a private file with one token per line, read again when it changes.

A line is ``ROLE TOKEN NAME``: the role is ``full`` or ``read``, the name is what
log lines call the caller. Blank lines and lines that start with ``#`` mean
nothing. What the file says now is what holds: a token taken out of it is refused
from the next call on, and without the file every token is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
import threading
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.errors import ConfigError
from flue_grpc.limits import TOKEN_BYTES, TOKEN_FILE_BYTES, TOKEN_MIN_CHARACTERS
from flue_grpc.security.file_signature import FileSignature, file_signature
from flue_grpc.security.roles import Principal, Role
from flue_grpc.security.token_storage import make_token_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# RFC 6750 b64token; names stay clear of spaces and control characters.
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_NAME: Final = re.compile(r"[A-Za-z0-9._@:/-]{1,64}")
_WRITABLE_OR_OPEN: Final = stat.S_IWGRP | stat.S_IRWXO
HEADER: Final = (
    "# Bearer tokens of flue-grpc, one per line: ROLE TOKEN NAME. Roles: full, read.\n"
    "# A change holds from the next call on; a removed token is refused at once.\n"
)


class Token(msgspec.Struct, frozen=True):
    """One token as it is kept in memory: its SHA-256, never the token itself."""

    digest: bytes
    principal: Principal


class TokenSet(msgspec.Struct, frozen=True):
    """The tokens of a file, and the numbers of its lines that could not be used."""

    tokens: tuple[Token, ...]
    bad_lines: tuple[int, ...] = ()

    def identify(self, presented: str) -> Principal | None:
        """Find whose token this is; every token is compared, whichever matches."""
        digest = _digest(presented)
        found: Principal | None = None
        for token in self.tokens:
            if hmac.compare_digest(token.digest, digest):
                found = token.principal
        return found


NO_TOKENS: Final = TokenSet(())


def new_token() -> str:
    """Make a token with 256 bits of randomness."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def parse(text: str) -> TokenSet:
    """Read the lines of a token file; a line of bad form is left out and counted."""
    tokens: list[Token] = []
    bad: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        token = _parse_fields(fields)
        if token is None:
            bad.append(number)
        else:
            tokens.append(token)
    return TokenSet(tuple(tokens), tuple(bad))


def create_token_file(path: Path) -> None:
    """Make ``path`` 0600 with one full token, unless something has that name already.

    A missing directory is made 0700. Raises ConfigError when it cannot be made.
    """
    make_token_file(path, f"{HEADER}{format_line(Role.FULL, new_token(), 'default')}\n")


def is_token_name(name: str) -> bool:
    """Say whether a token may be called that: fit for a log line, without spaces."""
    return _NAME.fullmatch(name) is not None


def format_line(role: Role, token: str, name: str) -> str:
    """Write one line of a token file, without its line end."""
    return f"{role} {token} {name}"


def read_token_file(path: Path) -> TokenSet:
    """Read the tokens of ``path``; raises ConfigError as ``read_token_text`` does."""
    return parse(read_token_text(path))


def read_token_text(path: Path) -> str:
    """Read what ``path`` holds.

    Raises ConfigError when it is missing, no regular file, larger than
    TOKEN_FILE_BYTES, open to others, or not text.
    """
    try:
        data = _read(path)
    except OSError as error:
        raise ConfigError(f"cannot read the token file {path}: {error.strerror}") from error
    if len(data) > TOKEN_FILE_BYTES:
        raise ConfigError(f"the token file {path} is larger than {TOKEN_FILE_BYTES} bytes")
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        raise ConfigError(f"the token file {path} is not plain ASCII text") from error


class _Reading(msgspec.Struct, frozen=True):
    """What was there at the last look; ``tokens`` is None when it could not be used."""

    signature: FileSignature | None
    tokens: TokenSet | None


class TokenFile:
    """The tokens of a file that may change at any time; safe from any thread.

    ``on_problem`` is told, in words without a token or a path, when the file
    cannot be used or has lines that cannot be, once for each change.
    """

    def __init__(self, path: Path, on_problem: Callable[[str], None]) -> None:
        """Read the file once; raises ConfigError when it cannot be used or is empty."""
        self._path = path
        self._on_problem = on_problem
        self._lock = threading.Lock()
        signature = file_signature(path)
        tokens = read_token_file(path)
        if not tokens.tokens:
            raise ConfigError(f"the token file {path} has no token: add a line `full TOKEN NAME`")
        self._last = _Reading(signature, tokens)
        self._report_bad_lines(tokens)

    def identify(self, presented: str) -> Principal | None:
        """Find whose token this is by the file as it is now."""
        return self._current().identify(presented)

    def _current(self) -> TokenSet:
        last = self._last
        if last.tokens is not None and last.signature == file_signature(self._path):
            return last.tokens
        with self._lock:
            return self._read_again(self._last) or NO_TOKENS

    def _read_again(self, before: _Reading) -> TokenSet | None:
        """Read the file; one that could not be used is tried at each call, but told of once."""
        signature = file_signature(self._path)
        try:
            tokens = read_token_file(self._path)
        except ConfigError:
            self._last = _Reading(signature, None)
            if before.tokens is not None or before.signature != signature:
                self._on_problem("the token file cannot be used any more: every token is refused")
            return None
        self._last = _Reading(signature, tokens)
        if before.signature != signature:
            self._report_bad_lines(tokens)
        return tokens

    def _report_bad_lines(self, tokens: TokenSet) -> None:
        for number in tokens.bad_lines:
            self._on_problem(f"line {number} of the token file is not ROLE TOKEN NAME")


def _read(path: Path) -> bytes:
    """Read one byte more than is allowed at most; what is no regular file is never waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _refuse_unsafe(path, os.fstat(descriptor))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(TOKEN_FILE_BYTES + 1)
    finally:
        os.close(descriptor)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _parse_fields(fields: list[str]) -> Token | None:
    expected = 3
    if len(fields) != expected:
        return None
    role, token, name = fields
    if role not in tuple(Role) or len(token) < TOKEN_MIN_CHARACTERS:
        return None
    if not (_TOKEN.fullmatch(token) and is_token_name(name)):
        return None
    return Token(_digest(token), Principal(name, Role(role)))


def _refuse_unsafe(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f"the token file {path} is not a regular file")
    mode = stat.S_IMODE(status.st_mode)
    if mode & _WRITABLE_OR_OPEN:
        raise ConfigError(
            f"others may read or change the token file {path} (mode {mode:04o}); "
            f"run `chmod 600 {path}`"
        )
    if status.st_uid not in (0, os.geteuid()) and os.geteuid() != 0:
        raise ConfigError(f"the token file {path} belongs to user {status.st_uid}")
