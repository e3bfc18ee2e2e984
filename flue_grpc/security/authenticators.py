"""Finding out who calls: by the bearer token of a call, or by the client's certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from flue_grpc.errors import UnauthenticatedError
from flue_grpc.security.alternative_names import configured_name, names_of
from flue_grpc.security.roles import Principal, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from flue_grpc.security.alternative_names import AlternativeName
    from flue_grpc.security.tokens import TokenFile

    Metadata = Iterable[tuple[str, str | bytes]]
    AuthContext = Mapping[str, Iterable[bytes]]

ANY_NAME: Final = "*"
_SCHEME: Final = "bearer "
_CERTIFICATE: Final = "x509_pem_cert"
_LOGGED_NAME_CHARACTERS: Final = 128


class Authenticator(Protocol):
    """One way to find out who calls.

    ``forgets``: who was known may not be so later, while the server runs.
    """

    forgets: ClassVar[bool]

    def identify(self, metadata: Metadata, auth_context: AuthContext) -> Principal:
        """Name the caller; raises UnauthenticatedError when nobody is known by that."""


class TokenAuthenticator:
    """Demands ``authorization: Bearer TOKEN``, once, with a token of the file."""

    forgets: ClassVar[bool] = True

    def __init__(self, tokens: TokenFile) -> None:
        """Go by the tokens of a file."""
        self._tokens = tokens

    def identify(self, metadata: Metadata, auth_context: AuthContext) -> Principal:
        """Name the caller by the call's metadata alone."""
        del auth_context
        values = [value for key, value in metadata if key == "authorization"]
        if len(values) != 1:
            raise UnauthenticatedError("this address wants one `authorization: Bearer` token")
        principal = self._tokens.identify(_bearer(values[0]))
        if principal is None:
            raise UnauthenticatedError("the bearer token is not known here")
        return principal


class CertificateAuthenticator:
    """Demands a client certificate, verified by TLS already, with an allowed name.

    The common name is left out: it is no name of a peer since RFC 6125.
    """

    forgets: ClassVar[bool] = False

    def __init__(self, roles: Mapping[str, Role]) -> None:
        """Take the roles by subject alternative name; ``*`` is any certificate.

        A name has its role as a name of its own kind alone, see ``configured_name``.
        """
        self._any = roles.get(ANY_NAME)
        self._roles = {
            configured_name(name): role for name, role in roles.items() if name != ANY_NAME
        }

    def identify(self, metadata: Metadata, auth_context: AuthContext) -> Principal:
        """Name the caller by its certificate alone; the widest of its roles holds."""
        del metadata
        names = [name for pem in auth_context.get(_CERTIFICATE, ()) for name in names_of(pem)]
        matches = [Principal(name.text, self._roles[name]) for name in names if name in self._roles]
        for principal in matches:
            if principal.role is Role.FULL:
                return principal
        if matches:
            return matches[0]
        return self._identify_any(names)

    def _identify_any(self, names: list[AlternativeName]) -> Principal:
        if self._any is None or not names:
            raise UnauthenticatedError("no name of the client certificate is allowed here")
        return Principal(_for_log(names[0].text), self._any)


class Trusting:
    """Lets everybody in: somebody else, such as a sidecar, has asked for credentials."""

    forgets: ClassVar[bool] = False

    def identify(self, metadata: Metadata, auth_context: AuthContext) -> Principal:
        """Name nobody, and allow everything."""
        del metadata, auth_context
        return Principal("", Role.FULL)


@dataclass(frozen=True, slots=True)
class Trust:
    """How callers over TCP are known; None where no such address is served."""

    plaintext: Authenticator | None = None
    secure: Authenticator | None = None


def _bearer(value: str | bytes) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    if text[: len(_SCHEME)].lower() != _SCHEME:
        raise UnauthenticatedError("the authorization is not a `Bearer` token")
    return text[len(_SCHEME) :]


def _for_log(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name[:_LOGGED_NAME_CHARACTERS])
