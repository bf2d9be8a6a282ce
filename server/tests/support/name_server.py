"""A real name server on loopback."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import dns.exception
import dns.resolver

_STRING = 255
"""Maximum length of a string in a TXT record, in bytes."""


@contextmanager
def name_server(texts: Mapping[str, bytes], aliases: Mapping[str, str]) -> Iterator[dns.resolver.Resolver]:
    """Start dnsmasq with TXT records and CNAMEs; yield a resolver that asks it.

    It knows all names below the domains of the records, and refuses others.
    """
    program = shutil.which("dnsmasq", path="/usr/sbin:/usr/bin")
    assert program is not None, "dnsmasq is missing: lab/setup.sh tests installs it"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    domains = {".".join(name.split(".")[-2:]) for name in (*texts, *aliases)}
    arguments = [
        *(f"--local=/{domain}/" for domain in sorted(domains)),
        *(f"--txt-record={name},{','.join(_strings(text))}" for name, text in texts.items()),
        *(f"--cname={name},{target}" for name, target in aliases.items()),
    ]
    started = subprocess.Popen(
        [program, "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--pid-file=",
         "--user=", "--bind-interfaces", "--listen-address=127.0.0.1", f"--port={port}", *arguments],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    resolver = dns.resolver.Resolver(configure=False)
    resolver.nameservers, resolver.port = ["127.0.0.1"], port
    try:
        _wait(started, resolver)
        yield resolver
    finally:
        started.terminate()
        started.communicate()


def _strings(text: bytes) -> list[str]:
    return [text[start : start + _STRING].decode() for start in range(0, len(text), _STRING)]


def _wait(started: subprocess.Popen[bytes], resolver: dns.resolver.Resolver) -> None:
    """Wait until the server answers at all, also that it does not know a name."""
    while True:
        assert started.poll() is None, f"dnsmasq ended: {started.communicate()[1].decode()}"
        try:
            resolver.resolve("ready.invalid", "TXT", lifetime=1, search=False)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoNameservers, dns.resolver.NoAnswer):
            return
        except dns.exception.Timeout:
            continue
