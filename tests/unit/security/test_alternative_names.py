from __future__ import annotations

import base64
import ipaddress
import ssl

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from flue_grpc.errors import UnauthenticatedError
from flue_grpc.security.alternative_names import (
    AlternativeName,
    NameKind,
    configured_name,
    names_of,
)
from tests.conftest import Authority

AUTHORITY = Authority()
SMALL = AUTHORITY.issue("x", x509.DNSName("a.example"), x509.RFC822Name("a@b.example")).certificate
DER = ssl.PEM_cert_to_DER_cert(SMALL.decode())


def pem(der):
    body = base64.encodebytes(der).decode()
    return f"-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n".encode()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("agent.example", NameKind.DNS),
        ("agent", NameKind.DNS),
        ("*.example", NameKind.DNS),
        ("agent@example.org", NameKind.EMAIL),
        ("spiffe://mesh/agent", NameKind.URI),
        ("https://user@example.org/", NameKind.URI),
        ("urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6", NameKind.URI),
        ("10.0.0.9", NameKind.ADDRESS),
        ("::1", NameKind.ADDRESS),
    ],
)
def test_the_form_of_a_name_is_its_kind(text, kind):
    assert configured_name(text) == AlternativeName(kind, text)


def test_an_address_is_the_same_however_it_is_written():
    assert configured_name("2001:DB8:0::9") == configured_name("2001:db8::9")


def test_names_are_read_in_order_and_other_kinds_left_out():
    names = [
        x509.UniformResourceIdentifier("spiffe://mesh/agent"),
        x509.RegisteredID(x509.ObjectIdentifier("1.2.3.4")),
        x509.DNSName("agent.example"),
        x509.DirectoryName(x509.Name([])),
        x509.IPAddress(ipaddress.ip_address("2001:db8::9")),
        x509.RFC822Name("agent@example.org"),
    ]
    assert names_of(AUTHORITY.issue("x", *names).certificate) == (
        AlternativeName(NameKind.URI, "spiffe://mesh/agent"),
        AlternativeName(NameKind.DNS, "agent.example"),
        AlternativeName(NameKind.ADDRESS, "2001:db8::9"),
        AlternativeName(NameKind.EMAIL, "agent@example.org"),
    )


def test_a_certificate_without_names_has_none():
    assert names_of(AUTHORITY.issue("x").certificate) == ()


@given(st.lists(st.text(st.characters(min_codepoint=1, max_codepoint=127)), max_size=40))
def test_names_of_any_number_and_length_are_read_as_they_are(texts):
    names = [x509.DNSName(text) for text in texts]
    read = names_of(AUTHORITY.issue("x", *names).certificate)
    assert [name.text for name in read] == texts


@pytest.mark.parametrize("length", [127, 128, 255, 256, 65_535, 65_536])
def test_lengths_of_every_form_are_read(length):
    issued = AUTHORITY.issue("x", x509.DNSName("a" * length))
    assert names_of(issued.certificate) == (AlternativeName(NameKind.DNS, "a" * length),)


@given(st.integers(0, len(DER) - 1), st.integers(0, 255))
def test_a_damaged_certificate_is_read_or_refused(at, value):
    damaged = DER[:at] + bytes((value,)) + DER[at + 1 :]
    try:
        assert len(names_of(pem(damaged))) <= 2
    except UnauthenticatedError:
        assert damaged != DER


@given(st.binary(max_size=64))
def test_what_is_no_certificate_is_refused(data):
    with pytest.raises(UnauthenticatedError):
        names_of(pem(data))


@pytest.mark.parametrize("text", [b"", b"no", b"\xff", SMALL[:-40]])
def test_what_is_no_pem_is_refused(text):
    with pytest.raises(UnauthenticatedError):
        names_of(text)


@pytest.mark.parametrize(
    "length",
    [b"\x81\x7f", b"\x82\x00\xff", b"\x80", b"\xff", b"\x85\x00\x00\x00\x00\x01", b"\x84\x01"],
)
def test_lengths_that_are_not_der_are_refused(length):
    with pytest.raises(UnauthenticatedError):
        names_of(pem(b"\x30" + length + bytes(255)))


def test_two_lists_of_names_are_refused():
    at = DER.index(bytes.fromhex("0603551d13"))  # the constraints become a second list
    twice = DER[:at] + bytes.fromhex("0603551d11") + DER[at + 5 :]
    with pytest.raises(UnauthenticatedError):
        names_of(pem(twice))
