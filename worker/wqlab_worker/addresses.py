"""Look up the addresses of a host. Which of them are public is in `wqlab_contracts.hosts`."""

from __future__ import annotations

import socket
from collections.abc import Callable

Resolve = Callable[[str, int], list[str]]
"""Return the IP addresses of a host and port. Raises OSError or UnicodeError."""


def resolve_host(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host as the system's resolver finds them. Raises OSError or UnicodeError."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
