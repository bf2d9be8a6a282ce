"""Look up the public key of a DKIM signature in DNS."""

from __future__ import annotations

import dkim
import dns.exception
import dns.rdatatype
import dns.resolver

DNS_TIMEOUT_S = 10


def look_up_key(
    name: bytes, timeout: float = DNS_TIMEOUT_S, resolver: dns.resolver.Resolver | None = None
) -> bytes | None:
    """Return the TXT record of a name, whose strings are joined (RFC 6376, 3.6.2.2); None if there is none.

    `resolver` is by default that of the system. Raises dkim.DnsTimeoutError if no server answers the question;
    dkimpy's own function returns None then, and a mail would be refused while a name server is broken.
    """
    try:
        text = name.decode("ascii")
    except UnicodeDecodeError:
        return None
    try:
        found = (resolver or dns.resolver.get_default_resolver()).resolve(
            text, dns.rdatatype.TXT, lifetime=timeout, search=False
        )
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return None
    except (dns.exception.Timeout, dns.resolver.NoNameservers, dns.resolver.NoResolverConfiguration) as error:
        raise dkim.DnsTimeoutError(str(error)) from None
    except dns.exception.DNSException:  # not a name, such as one with an empty label
        return None
    return b"".join(found[0].strings)
