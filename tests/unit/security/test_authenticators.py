from __future__ import annotations

import pytest

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
    "ops@example.org": Role.READ,
}


@pytest.mark.parametrize(
    ("context", "principal"),
    [
        ({"peer_uri": [b"spiffe://mesh/agent"]}, Principal("spiffe://mesh/agent", Role.FULL)),
        ({"peer_dns": [b"other", b"viewer.example"]}, Principal("viewer.example", Role.READ)),
        ({"peer_ip": [b"10.0.0.9"]}, Principal("10.0.0.9", Role.READ)),
        ({"peer_email": [b"ops@example.org"]}, Principal("ops@example.org", Role.READ)),
        (
            {"peer_dns": [b"viewer.example"], "peer_uri": [b"spiffe://mesh/agent"]},
            Principal("spiffe://mesh/agent", Role.FULL),
        ),
    ],
)
def test_an_allowed_alternative_name_has_its_role(context, principal):
    assert CertificateAuthenticator(ROLES).identify([], context) == principal


@pytest.mark.parametrize(
    "context",
    [
        {},
        {"peer_dns": []},
        {"peer_dns": [b"viewer.example.evil.org"]},
        {"peer_dns": [b"sub.viewer.example"]},
        {"peer_dns": [b"VIEWER.EXAMPLE"]},
        {"peer_dns": [b"viewer.example\x00"]},
        {"x509_common_name": [b"viewer.example"]},
        {"peer_dns": [b"*"]},
    ],
)
def test_any_other_name_is_refused_the_common_name_too(context):
    with pytest.raises(UnauthenticatedError):
        CertificateAuthenticator(ROLES).identify([], context)


def test_a_star_lets_any_certificate_with_a_name_in_and_logs_it_safely():
    any_name = CertificateAuthenticator({"*": Role.READ})
    assert any_name.identify([], {"peer_dns": [b"a\nb\x1b[31m"]}) == Principal(
        "a?b?[31m", Role.READ
    )
    with pytest.raises(UnauthenticatedError):
        any_name.identify([], {"x509_common_name": [b"cn"]})


def test_behind_a_sidecar_everybody_may_do_everything():
    assert Trusting().identify([], {}) == Principal("", Role.FULL)
