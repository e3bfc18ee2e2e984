"""Who calls, and whether they may (contract "Transport and trust")."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from flue_grpc.errors import ReadOnlyCredentialsError, UnauthenticatedError
from flue_grpc.security.roles import Principal, Role, check_allowed, is_open

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flue_grpc.rpc.calls import Call
    from flue_grpc.security.authenticators import AuthContext, Trust

# The file system has said already who may connect to the socket.
SOCKET_USER: Final = Principal("", Role.FULL)
_UNIX_PEER: Final = "unix:"
_SECURE_TYPE: Final = b"ssl"


class Authentication:
    """Lets a call in by the way it came, and by what it brought."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust

    @contextmanager
    def around(self, call: Call) -> Iterator[None]:
        """Refuse the call before its request is read, or note whose it is, and for how long."""
        if not is_open(call.method.path):
            identify = self._way_in(call)
            principal = identify()
            call.principal = principal.name
            check_allowed(principal, call.method.path)
        yield

    def _way_in(self, call: Call) -> Callable[[], Principal]:
        """Return what names the caller by credentials that it brought, again and again."""
        context = call.context
        if context.peer().startswith(_UNIX_PEER):
            return lambda: SOCKET_USER
        # typeshed has a value where grpcio gives a sequence of values.
        properties = cast("AuthContext", context.auth_context())
        kinds = tuple(properties.get("transport_security_type", ()))
        authenticator = self._trust.secure if kinds == (_SECURE_TYPE,) else self._trust.plaintext
        if authenticator is None:
            raise UnauthenticatedError("this address takes no calls")
        identify = partial(authenticator.identify, context.invocation_metadata(), properties)
        if authenticator.forgets:
            call.is_allowed = partial(_is_allowed, identify, call.method.path)
        return identify


def _is_allowed(identify: Callable[[], Principal], path: str) -> bool:
    try:
        check_allowed(identify(), path)
    except (UnauthenticatedError, ReadOnlyCredentialsError):
        return False
    return True
