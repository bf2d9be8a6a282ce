"""Post one webhook: sign it as Standard Webhooks has it, and tell what the receiver answered."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import SplitResult, urlsplit

import httpcore
from standardwebhooks import Webhook as Signer

from wqlab_contracts.enums import AttemptOutcome
from wqlab_contracts.hosts import host_problem

from ..http.guarded_network import AddressRefused, GuardedBackend, Resolve, resolve, trusted_certificates

LIMIT_S = 15.0
"""Time for connection, request and answer together."""
ANSWER_LIMIT = 4096
"""Bytes that are read of an answer."""
ANSWER_SHOWN = 1000
"""Characters of an answer that are kept."""
_PORTS = {"http": 80, "https": 443}
_GONE = 410
"""The receiver asks for no more events (Standard Webhooks)."""


@dataclass(frozen=True)
class Result:
    """What came of an attempt."""

    outcome: AttemptOutcome
    status: int | None = None
    answer: str = ""
    problem: str = ""
    wait_s: float | None = None
    """Seconds for which the receiver wants no other attempt."""
    reference: str = ""
    """The receiver's id of what it has accepted, if that is needed later."""


@dataclass(frozen=True)
class Letter:
    """What is posted, and where."""

    url: str
    message_id: str
    body: str
    secrets: Sequence[str]
    """The current secret, and the previous one while both are valid."""


def mistake(url: str, private_hosts: frozenset[str]) -> str | None:
    """Return why no webhook can be posted to a URL, or None. The address of its name is not looked up."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return "the URL has characters that must be encoded: write %20 for a space, xn-- for a name that is not ASCII"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"not a URL: {error}"
    if parts.scheme not in _PORTS or not parts.hostname:
        return "write https:// and a host"
    if not is_listed(parts, private_hosts) and (problem := host_problem(parts.hostname)) is not None:
        return problem
    if parts.username is not None or parts.password is not None:
        return "leave out user name and password: the receiver checks the signature"
    if parts.fragment or "#" in url:
        return "leave out what begins with #: it is never sent"
    if port == 0:
        return "port 0 does not exist"
    if parts.scheme == "http" and not is_listed(parts, private_hosts):
        return "write https://: the events would travel unencrypted, and the operator does not list this host"
    return None


def is_listed(parts: SplitResult, private_hosts: frozenset[str]) -> bool:
    """Return True if the operator lists the host and port. An entry without a port is for the scheme's default port."""
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = parts.port or _PORTS[parts.scheme]
    names = {f"{host}:{port}"} | ({f"{host}"} if port == _PORTS[parts.scheme] else set())
    return not names.isdisjoint(private_hosts)


def signed_headers(letter: Letter, at: datetime) -> dict[str, str]:
    """Return the three headers of Standard Webhooks; `at` is in UTC. There is a signature for each secret."""
    signatures = [Signer(secret).sign(letter.message_id, at, letter.body) for secret in letter.secrets]
    return {
        "webhook-id": letter.message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def post(
    letter: Letter,
    at: datetime,
    private_hosts: frozenset[str],
    *,
    limit_s: float = LIMIT_S,
    find: Resolve = resolve,
    tls: ssl.SSLContext | None = None,
) -> Result:
    """Post once. Redirects are not followed, no proxy is used, and no answer makes this raise.

    `at` is the time that is signed, in UTC.
    """
    if problem := mistake(letter.url, private_hosts):
        return Result(AttemptOutcome.REFUSED, problem=problem)
    parts = urlsplit(letter.url)
    headers = {
        "Host": parts.netloc,
        "Content-Type": "application/json",
        "User-Agent": "wqlab",
        "Accept-Encoding": "identity",
        "Connection": "close",
        **signed_headers(letter, at),
    }
    network = GuardedBackend(private=is_listed(parts, private_hosts), limit_s=limit_s, find=find)
    try:
        with (
            httpcore.ConnectionPool(
                ssl_context=tls or trusted_certificates(letter.url), network_backend=network, retries=0
            ) as pool,
            pool.stream("POST", letter.url, headers=list(headers.items()), content=letter.body.encode()) as response,
        ):
            return _judge(response, _beginning(response))
    except AddressRefused as error:
        return Result(AttemptOutcome.FAILED, problem=f"{error}; the operator can list it (WQLAB_PRIVATE_WEBHOOK_HOSTS)")
    except httpcore.ConnectTimeout:
        return Result(AttemptOutcome.FAILED, problem=f"no connection within {limit_s:g} s")
    except httpcore.ConnectError as error:
        return Result(AttemptOutcome.FAILED, problem=f"no connection: {error}")
    except httpcore.TimeoutException:
        problem = f"no answer within {limit_s:g} s; the receiver may have got the event"
        return Result(AttemptOutcome.UNKNOWN, problem=problem)
    except (httpcore.NetworkError, httpcore.ProtocolError, ssl.SSLError, OSError) as error:
        problem = f"the connection ended before the answer: {error or type(error).__name__}"
        return Result(AttemptOutcome.UNKNOWN, problem=problem)


def _beginning(response: httpcore.Response) -> bytes:
    """Read the beginning of an answer. The connection is closed on the rest."""
    content = b""
    for chunk in response.iter_stream():
        content += chunk
        if len(content) >= ANSWER_LIMIT:
            break
    return content[:ANSWER_LIMIT]


def _judge(response: httpcore.Response, content: bytes) -> Result:
    status, shown = (
        response.status,
        content.decode(errors="replace")[:ANSWER_SHOWN].replace("\0", "\N{REPLACEMENT CHARACTER}"),
    )
    if 200 <= status < 300:
        return Result(AttemptOutcome.ACCEPTED, status, shown)
    if status == _GONE:
        return Result(AttemptOutcome.REFUSED, status, shown, "410: the receiver asks for no more events")
    if 300 <= status < 400:
        return Result(AttemptOutcome.FAILED, status, shown, f"{status}: redirects are not followed; change the URL")
    return Result(AttemptOutcome.FAILED, status, shown, f"the receiver answered {status}")
