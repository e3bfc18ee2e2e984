"""The subject alternative names of a client's certificate, each of its kind (RFC 5280 4.2.1.6).

They are read from the certificate, verified by TLS already: what grpcio says of
them ends at a NUL. Only DER is read, and whatever is odd is refused.
"""

from __future__ import annotations

import ipaddress
import ssl
from enum import Enum
from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc.errors import UnauthenticatedError

if TYPE_CHECKING:
    from collections.abc import Iterator


class NameKind(Enum):
    """The kinds that can have a role, by their tags in a certificate."""

    EMAIL = 0x81
    DNS = 0x82
    URI = 0x86
    ADDRESS = 0x87


class AlternativeName(msgspec.Struct, frozen=True):
    """One name; an address is written as ``ipaddress`` writes it."""

    kind: NameKind
    text: str


_TAGS: Final = frozenset(kind.value for kind in NameKind)
_OBJECT_ID: Final = 0x06
_OCTETS: Final = 0x04
_SEQUENCE: Final = 0x30
_EXTENSIONS: Final = 0xA3
_ALTERNATIVE_NAME: Final = bytes((0x55, 0x1D, 0x11))
_LONG_TAG: Final = 0x1F
_LONG_LENGTH: Final = 0x80
_LENGTH_BYTES: Final = 4


def configured_name(text: str) -> AlternativeName:
    """Tell the kind of a name by its form: an address, a URI, an e-mail address, else DNS."""
    try:
        return AlternativeName(NameKind.ADDRESS, str(ipaddress.ip_address(text)))
    except ValueError:
        pass
    # No DNS name has a colon or an at sign, and a URI may have both.
    if ":" in text:
        return AlternativeName(NameKind.URI, text)
    return AlternativeName(NameKind.EMAIL if "@" in text else NameKind.DNS, text)


def names_of(pem: bytes) -> tuple[AlternativeName, ...]:
    """Read the names of a PEM certificate that can have a role, in its order.

    Raises UnauthenticatedError when one holds a NUL, which no such name can, or
    when the certificate is not as RFC 5280 wants it.
    """
    try:
        return tuple(_names(ssl.PEM_cert_to_DER_cert(pem.decode("ascii").strip())))
    except ValueError as error:
        raise UnauthenticatedError("the names of the client certificate cannot be read") from error


def _names(certificate: bytes) -> Iterator[AlternativeName]:
    for tag, value in _alternative_names(certificate):
        if tag not in _TAGS:
            continue
        kind = NameKind(tag)
        if kind is NameKind.ADDRESS:
            yield AlternativeName(kind, str(ipaddress.ip_address(value)))
        elif 0 in value:
            raise ValueError("a name holds a NUL")
        else:
            # Each byte a character of its own: no two names become one.
            yield AlternativeName(kind, value.decode("latin-1"))


def _alternative_names(certificate: bytes) -> list[tuple[int, bytes]]:
    found = [value for name, value in _extensions(certificate) if name == _ALTERNATIVE_NAME]
    if not found:
        return []
    (only,) = found
    return _elements(_only(only, _SEQUENCE))


def _extensions(certificate: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the id and the value of each extension."""
    to_be_signed = _elements(_only(certificate, _SEQUENCE))[:1]
    for tag, value in _elements(_content(to_be_signed, _SEQUENCE)):
        if tag != _EXTENSIONS:
            continue
        for extension in _elements(_only(value, _SEQUENCE)):
            parts = _elements(_content([extension], _SEQUENCE))
            yield _content(parts[:1], _OBJECT_ID), _content(parts[-1:], _OCTETS)


def _only(data: bytes, tag: int) -> bytes:
    return _content(_elements(data), tag)


def _content(elements: list[tuple[int, bytes]], tag: int) -> bytes:
    """Return what the one element holds; raises ValueError unless it is alone and of this tag."""
    ((found, value),) = elements
    if found != tag:
        raise ValueError("another element")
    return value


def _elements(data: bytes) -> list[tuple[int, bytes]]:
    """Split ``data`` into elements, tag and content; raises ValueError for what is not DER."""
    elements = []
    at = 0
    while at < len(data):
        if data[at] & _LONG_TAG == _LONG_TAG:
            raise ValueError("a tag of several bytes")
        begin, size = _length(data, at + 1)
        end = begin + size
        if end > len(data):
            raise ValueError("an element ends behind the end")
        elements.append((data[at], data[begin:end]))
        at = end
    return elements


def _length(data: bytes, at: int) -> tuple[int, int]:
    """Read a length at ``at``; return where the content begins, and its size."""
    first = data[at] if at < len(data) else -1
    if 0 <= first < _LONG_LENGTH:
        return at + 1, first
    count = first - _LONG_LENGTH
    digits = data[at + 1 : at + 1 + count]
    size = int.from_bytes(digits)
    is_shortest = size >= _LONG_LENGTH and digits[:1] != b"\0"
    if not 0 < count <= _LENGTH_BYTES or len(digits) != count or not is_shortest:
        raise ValueError("a length that is not DER")
    return at + 1 + count, size
