"""Page tokens: a list's cursor on its way through a client (contract rule 2).

A token is url-safe base64 of a version byte, a checksum and the cursor as
msgpack. The checksum covers the request's fingerprint, so a token fits only the
request that it came from; it proves integrity, not origin, since a token
carries no authority.
"""

from __future__ import annotations

import base64
import binascii
from hashlib import blake2b
from math import isfinite
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from flue_grpc import limits
from flue_grpc.errors import BadPageTokenError
from flue_grpc.listing import Cursor

if TYPE_CHECKING:
    from google.protobuf.message import Message

C = TypeVar("C", bound=Cursor)

VERSION: Final = b"\x01"
UNBOUND_FIELDS: Final = ("limit", "page_token", "follow", "max_bytes")
_CHECKSUM_BYTES: Final = 8
_HEADER_BYTES: Final = len(VERSION) + _CHECKSUM_BYTES
_ENCODER: Final = msgspec.msgpack.Encoder()


class PageTokens:
    """The tokens of one request: bound to its type and all but the unbound fields."""

    __slots__ = ("_request",)

    def __init__(self, request: Message) -> None:
        """Take the fingerprint of ``request``, which is left as it is."""
        bound = type(request)()
        bound.CopyFrom(request)
        bound.DiscardUnknownFields()
        for field in UNBOUND_FIELDS:
            if field in bound.DESCRIPTOR.fields_by_name:
                bound.ClearField(field)
        digest = blake2b(bound.DESCRIPTOR.full_name.encode(), digest_size=16)
        digest.update(bound.SerializeToString(deterministic=True))
        self._request = digest.digest()

    def encode(self, cursor: Cursor | None) -> str:
        """Make the token of ``cursor``; None, the end of the list, is the empty token."""
        if cursor is None:
            return ""
        payload = _ENCODER.encode(cursor)
        token = VERSION + self._checksum(type(cursor), payload) + payload
        return base64.urlsafe_b64encode(token).rstrip(b"=").decode("ascii")

    def decode(self, token: str, kind: type[C]) -> C | None:
        """Read a token back; the empty one is None, the start of the list.

        Raises BadPageTokenError for anything that this request did not get.
        """
        if not token:
            return None
        raw = _unwrap(token)
        payload = raw[_HEADER_BYTES:]
        if raw[:_HEADER_BYTES] != VERSION + self._checksum(kind, payload):
            raise _bad_token()
        try:
            cursor = msgspec.msgpack.decode(payload, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _bad_token() from error
        if not all(map(_is_sound, msgspec.structs.astuple(cursor))):
            raise _bad_token()
        return cursor

    def _checksum(self, kind: type[Cursor], payload: bytes) -> bytes:
        digest = blake2b(self._request, digest_size=_CHECKSUM_BYTES)
        digest.update(kind.__name__.encode() + b"\0" + payload)
        return digest.digest()


def _unwrap(token: str) -> bytes:
    if len(token) > limits.PAGE_TOKEN_BYTES or not token.isascii():
        raise _bad_token()
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise _bad_token() from error
    # Base64 has several spellings of one value; only ours is accepted.
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii") != token:
        raise _bad_token()
    return raw


def _is_sound(value: object) -> bool:
    """Whether SQLite can hold the value: msgpack has larger integers than it."""
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, (tuple, list)):
        return all(map(_is_sound, value))
    return True


def _bad_token() -> BadPageTokenError:
    return BadPageTokenError("the page token does not belong to this request")
