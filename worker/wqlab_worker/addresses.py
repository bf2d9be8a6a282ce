"""The addresses of a host, and whether they are public. A submitter must not reach the lab's own network through it."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence

Resolve = Callable[[str, int], list[str]]
"""Return the IP addresses of a host and port. Raises OSError or UnicodeError."""


def resolve_host(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host as the system's resolver finds them. Raises OSError or UnicodeError."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def private_address(addresses: Sequence[str]) -> str | None:
    """Return the first address that is not public, or None."""
    return next((each for each in addresses if not ipaddress.ip_address(each.partition("%")[0]).is_global), None)


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
