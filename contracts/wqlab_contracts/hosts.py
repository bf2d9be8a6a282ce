"""Hosts that users name: which names are allowed, and which addresses are of the public internet."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

_NAME = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_NOT_PUBLIC = tuple(
    ipaddress.ip_network(network)
    for network in (
        "2001::/23",  # protocols: Teredo, which contains an IPv4 address that a gateway connects to, and identifiers
        "2002::/16",  # 6to4, the same
        "192.88.99.0/24",  # relays of 6to4
        "3fff::/20",  # documentation
    )
)


def is_public(address: str) -> bool:
    """Return True for an address of the public internet, and not of this machine, its networks or a gateway of them.

    An IPv4-mapped address is judged by its IPv4 address, because a connection to it goes there. Other addresses that
    contain an IPv4 address (NAT64, 6to4, Teredo, IPv4-compatible) are not public, nor are multicast and site-local
    ones, and what is no address.
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
        elif parsed not in _GLOBAL_UNICAST:
            return False
    if any(parsed in network for network in _NOT_PUBLIC):
        return False
    return parsed.is_global and not parsed.is_multicast


def find_private(addresses: Sequence[str]) -> str | None:
    """Return the first address that is not public, or None."""
    return next((each for each in addresses if not is_public(each)), None)


def is_address(host: str) -> bool:
    """Return True for an IPv4 or IPv6 address in its usual form, without brackets."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def host_problem(host: str) -> str | None:
    """Return why the host of a URL that a user gives is refused, or None. Names and usual addresses are allowed.

    Programs disagree on how other characters, and numbers such as `127.1` or `0x7f000001`, are turned into an address,
    so that one of them could connect to another host than the one that was checked.
    """
    if is_address(host) and "%" not in host:
        return None
    host = host.lower()
    if len(host) > 253 or not _NAME.fullmatch(host):
        return f"{host[:80]!r} is not a host name: write letters, digits, dots and hyphens, and xn-- for all others"
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        return f"{host[:80]!r} is an unusual form of an IP address; write the name of the host"
    return None
