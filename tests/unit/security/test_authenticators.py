from __future__ import annotations

import ipaddress

import pytest
from cryptography import x509

from flue_grpc.errors import UnauthenticatedError
from flue_grpc.security.authenticators import (
    CertificateAuthenticator,
    TokenAuthenticator,
    Trusting,
)
from flue_grpc.security.roles import Principal, Role
from flue_grpc.security.tokens import TokenFile

TOKEN = "t" * 43
AGENT = Principal("agent", Role.FULL)


@pytest.fixture
def by_token(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"full {TOKEN} agent\n")
    path.chmod(0o600)
    return TokenAuthenticator(TokenFile(path, print))


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_bearer_token_names_its_owner(by_token, scheme):
    metadata = [("user-agent", "grpc-go"), ("authorization", f"{scheme} {TOKEN}")]
    assert by_token.identify(metadata, {}) == AGENT


@pytest.mark.parametrize(
    "values",
    [
        [],
        [f"Bearer {TOKEN}", f"Bearer {TOKEN}"],
        [TOKEN],
        [f"Basic {TOKEN}"],
        [f"Bearer{TOKEN}"],
        ["Bearer "],
        ["Bearer"],
        [""],
        [b"\xff\xfe"],
        [f"Bearer {TOKEN}x"],
    ],
)
def test_anything_else_names_nobody(by_token, values):
    metadata = [("authorization", value) for value in values]
    with pytest.raises(UnauthenticatedError) as caught:
        by_token.identify(metadata, {})
    assert TOKEN not in caught.value.message


ROLES = {
    "spiffe://mesh/agent": Role.FULL,
    "viewer.example": Role.READ,
    "10.0.0.9": Role.READ,
    "2001:db8::9": Role.READ,
    "ops@example.org": Role.READ,
}
DNS, URI, EMAIL = x509.DNSName, x509.UniformResourceIdentifier, x509.RFC822Name


def address(text):
    return x509.IPAddress(ipaddress.ip_address(text))


def context_of(authority, *names, common_name="x"):
    """What grpcio gives of a connection with a certificate of these names."""
    return {"x509_pem_cert": [authority.issue(common_name, *names).certificate]}


@pytest.mark.parametrize(
    ("names", "principal"),
    [
        ([URI("spiffe://mesh/agent")], Principal("spiffe://mesh/agent", Role.FULL)),
        ([DNS("other"), DNS("viewer.example")], Principal("viewer.example", Role.READ)),
        ([address("10.0.0.9")], Principal("10.0.0.9", Role.READ)),
        ([address("2001:db8::9")], Principal("2001:db8::9", Role.READ)),
        ([EMAIL("ops@example.org")], Principal("ops@example.org", Role.READ)),
        (
            [DNS("viewer.example"), URI("spiffe://mesh/agent")],
            Principal("spiffe://mesh/agent", Role.FULL),
        ),
    ],
)
def test_an_allowed_alternative_name_has_its_role(authority, names, principal):
    assert CertificateAuthenticator(ROLES).identify([], context_of(authority, *names)) == principal


@pytest.mark.parametrize(
    "names",
    [
        [],
        [DNS("viewer.example.evil.org")],
        [DNS("sub.viewer.example")],
        [DNS("VIEWER.EXAMPLE")],
        [DNS("viewer.example ")],
        [DNS("*")],
        # Right, but of another kind.
        [EMAIL("viewer.example")],
        [URI("viewer.example")],
        [URI("10.0.0.9")],
        [DNS("10.0.0.9")],
        [DNS("ops@example.org")],
        [URI("ops@example.org")],
        [DNS("spiffe://mesh/agent")],
        [EMAIL("spiffe://mesh/agent")],
    ],
)
def test_any_other_name_is_refused_the_common_name_too(authority, names):
    context = context_of(authority, *names, common_name="viewer.example")
    with pytest.raises(UnauthenticatedError):
        CertificateAuthenticator(ROLES).identify([], context)


@pytest.mark.parametrize("kind", [DNS, URI, EMAIL])
@pytest.mark.parametrize("text", ["viewer.example\0.evil.org", "viewer.example\0", "\0"])
@pytest.mark.parametrize("role", [ROLES, {"*": Role.READ}])
def test_a_certificate_with_a_nul_in_a_name_is_refused(authority, kind, text, role):
    for names in ([kind(text)], [DNS("viewer.example"), kind(text)]):
        with pytest.raises(UnauthenticatedError, match="cannot be read"):
            CertificateAuthenticator(role).identify([], context_of(authority, *names))


def test_without_a_certificate_nobody_is_known():
    with pytest.raises(UnauthenticatedError):
        CertificateAuthenticator(ROLES | {"*": Role.READ}).identify([], {})


def test_a_star_lets_any_certificate_with_a_name_in_and_logs_it_safely(authority):
    any_name = CertificateAuthenticator({"*": Role.READ})
    context = context_of(authority, DNS("a\nb\x1b[31m"))
    assert any_name.identify([], context) == Principal("a?b?[31m", Role.READ)
    with pytest.raises(UnauthenticatedError):
        any_name.identify([], context_of(authority, common_name="cn"))


def test_behind_a_sidecar_everybody_may_do_everything():
    assert Trusting().identify([], {}) == Principal("", Role.FULL)
