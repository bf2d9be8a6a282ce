"""Connect to receivers that users name: only to public addresses, and within a time limit for the whole attempt.

A name is resolved once; the connection goes to the address that was checked, so that a name that changes its address
in between reaches nothing else.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import httpcore

from wqlab_contracts.hosts import find_private, host_problem

Resolve = Callable[[str, int], Sequence[str]]


class AddressRefused(httpcore.ConnectError):
    """The receiver's address is not public, and the operator does not list the host."""


class NoAddress(httpcore.ConnectError):
    """The receiver's name has no address."""


class DeadlineExceeded(httpcore.ReadTimeout):
    """The time for the whole attempt is over."""


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host. Raises OSError or UnicodeError."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def trusted_certificates(url: str) -> ssl.SSLContext | None:
    """Return the system's certificates; None for a URL without TLS, since reading them takes 20 ms of CPU time."""
    return None if url.startswith("http:") else ssl.create_default_context()


class GuardedBackend(httpcore.NetworkBackend):
    """Network of one attempt: checks the address, and lets no operation last beyond the deadline."""

    def __init__(self, *, private: bool, limit_s: float, find: Resolve = resolve) -> None:
        """`private`: the operator lists the host, so its addresses may be private; `limit_s`: of the whole attempt,
        counted from when the name is resolved."""
        self._private = private
        self._limit_s = limit_s
        self._find = find
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address that answers.

        Raises AddressRefused if any of the addresses is not public, or if the host is in an unusual form.
        """
        if not self._private and (problem := host_problem(host)) is not None:
            raise AddressRefused(problem)
        try:
            addresses = list(self._find(host, port))
        except (OSError, UnicodeError) as error:
            raise NoAddress(f"{host} has no address: {error}") from error
        if not self._private and (private := find_private(addresses)) is not None:
            raise AddressRefused(f"{host} is the private address {private}")
        deadline = time.monotonic() + self._limit_s
        options = list(socket_options or ())
        for address in addresses[:-1]:
            try:
                stream = self._inner.connect_tcp(address, port, self._limit_s / 2, local_address, options)
                return _LimitedStream(stream, deadline)
            except httpcore.ConnectError:
                continue  # such as an IPv6 address on a machine without IPv6
        stream = self._inner.connect_tcp(addresses[-1], port, self._limit_s, local_address, options)
        return _LimitedStream(stream, deadline)


class _LimitedStream(httpcore.NetworkStream):
    """A connection whose operations end at a deadline, however slowly the other side sends."""

    def __init__(self, inner: httpcore.NetworkStream, deadline: float) -> None:
        self._inner = inner
        self._deadline = deadline

    def _remaining(self) -> float:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise DeadlineExceeded
        return remaining

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._remaining())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._remaining())

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _LimitedStream(self._inner.start_tls(ssl_context, server_hostname, self._remaining()), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
