"""Which TCP addresses only this machine can reach."""

from __future__ import annotations

import ipaddress
import socket


def is_loopback(host: str) -> bool:
    """Say whether every address that ``host`` stands for is a loopback address.

    A name that cannot be resolved is not: it may be something else later.
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return _resolves_to_loopback(host)


def _resolves_to_loopback(host: str) -> bool:
    if not host:
        return False
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    addresses = [str(address[0]).partition("%")[0] for *_, address in found]
    return bool(addresses) and all(ipaddress.ip_address(a).is_loopback for a in addresses)
