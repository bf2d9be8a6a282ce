"""Send one request to the API of a forge or a Patchwork.

Requests go to public addresses only, with one time limit, and follow no redirects.

Gitea's API takes GitHub's paths; GitLab has its own. `intake` reads with it, `outbox` writes.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import httpcore

from wqlab_contracts.specs import Forge, ForgeKind

from .guarded_network import AddressRefused, GuardedBackend, NoAddress, Resolve, resolve, trusted_certificates

LIMIT_S = 30.0
"""Time for connection, request and answer together."""
ANSWER_LIMIT = 8 << 20
"""Bytes; a page of 100 comments of the largest size has less."""


class ForgeUnreachable(Exception):
    """The forge did not answer. `sent` is True if the forge may have received the request."""

    def __init__(self, problem: str, *, sent: bool) -> None:
        super().__init__(problem)
        self.sent = sent


@dataclass(frozen=True)
class Answer:
    """Answer of the API."""

    status: int
    headers: Mapping[str, str]
    """Names are in lower case."""
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")

    @property
    def data(self) -> Any:
        """The JSON value; None if there is none."""
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError):
            return None

    @property
    def message(self) -> str:
        """What the forge says about an error, in at most 300 characters; empty without one."""
        told = self.data
        names = ("message", "error", "detail")
        found = next((told[name] for name in names if told.get(name)), None) if isinstance(told, dict) else None
        return " ".join(str(found).split())[:300].replace("\0", "") if found else ""


@dataclass(frozen=True)
class ForgeApi:
    """API of one repository."""

    forge: Forge
    token: str
    limit_s: float = LIMIT_S
    find: Resolve = resolve
    tls: ssl.SSLContext | None = None

    @property
    def repository_path(self) -> str:
        """Path of the repository, without the address of the API."""
        if self.forge.kind is ForgeKind.GITLAB:
            return f"/projects/{quote(self.forge.repository, safe='')}"
        return f"/repos/{self.forge.repository}"

    def get(self, path: str, etag: str = "") -> Answer:
        """Read `path` of the repository. With the `ETag` of an earlier answer the forge answers 304 if it would be the
        same. Raises ForgeUnreachable."""
        return self.send("GET", path, etag=etag)

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None, etag: str = "") -> Answer:
        """Send a request for `path` of the repository, which begins with a slash. Raises ForgeUnreachable."""
        url = f"{self.forge.api_url}{self.repository_path}{path}"
        content = None if body is None else json.dumps(body).encode()
        reach = Reach(self.forge.private, self.limit_s, "intake/forges.yaml", self.find, self.tls)
        return exchange(method, url, self._headers(etag), content, reach)

    def _headers(self, etag: str) -> dict[str, str]:
        scheme = {ForgeKind.GITHUB: "Bearer", ForgeKind.GITLAB: "Bearer", ForgeKind.GITEA: "token"}[self.forge.kind]
        headers = {
            "Authorization": f"{scheme} {self.token}",
            "Accept": "application/vnd.github+json" if self.forge.kind is ForgeKind.GITHUB else "application/json",
        }
        if self.forge.kind is ForgeKind.GITHUB:
            headers["X-GitHub-Api-Version"] = "2022-11-28"
        if etag:
            headers["If-None-Match"] = etag
        return headers


@dataclass(frozen=True)
class Reach:
    """Which addresses a request may reach, and for how long."""

    private: bool
    """True if the operator's file says that the address is in the lab's own network."""
    limit_s: float
    listed_in: str
    """Name of the operator's file, for error messages."""
    find: Resolve = resolve
    tls: ssl.SSLContext | None = None


def exchange(method: str, url: str, headers: Mapping[str, str], content: bytes | None, reach: Reach) -> Answer:
    """Send a request, whose content is JSON, and return its answer. Raises ForgeUnreachable."""
    sent = {
        "Host": urlsplit(url).netloc, "User-Agent": "wqlab", "Accept-Encoding": "identity", "Connection": "close",
        **headers,
    }  # fmt: skip
    if content is not None:
        sent |= {"Content-Type": "application/json", "Content-Length": f"{len(content)}"}
    network = GuardedBackend(private=reach.private, limit_s=reach.limit_s, find=reach.find)
    try:
        with (
            httpcore.ConnectionPool(
                ssl_context=reach.tls or trusted_certificates(url), network_backend=network, retries=0
            ) as pool,
            pool.stream(method, url, headers=list(sent.items()), content=content) as response,
        ):
            named = {name.decode("latin-1").lower(): text.decode("latin-1") for name, text in response.headers}
            return Answer(response.status, named, _read(response))
    except AddressRefused as error:
        problem = f"{error}; set `private: true` in {reach.listed_in} if it is in the lab's own network"
        raise ForgeUnreachable(problem, sent=False) from error
    except (NoAddress, httpcore.ConnectError, httpcore.ConnectTimeout) as error:
        raise ForgeUnreachable(f"no connection: {error or type(error).__name__}", sent=False) from error
    except httpcore.TimeoutException as error:
        raise ForgeUnreachable(f"no answer within {reach.limit_s:g} s", sent=True) from error
    except (httpcore.NetworkError, httpcore.ProtocolError, ssl.SSLError, OSError) as error:
        problem = f"the connection ended before the answer: {error or type(error).__name__}"
        raise ForgeUnreachable(problem, sent=True) from error


def _read(response: httpcore.Response) -> bytes:
    content = bytearray()
    for chunk in response.iter_stream():
        content += chunk
        if len(content) > ANSWER_LIMIT:
            break
    return bytes(content[:ANSWER_LIMIT])


def scarce_s(answer: Answer, now_s: float) -> float | None:
    """Return the seconds until the rate limit begins again if less than a tenth of it is left, otherwise None.

    What can wait leaves the rest to what cannot. `now_s` is the Unix time.
    """
    for prefix in ("x-ratelimit-", "ratelimit-"):
        texts = [answer.headers.get(f"{prefix}{name}", "")[:12] for name in ("limit", "remaining", "reset")]
        if all(text.isascii() and text.isdigit() for text in texts):
            limit, remaining, reset = map(int, texts)
            return max(0.0, reset - now_s) + 1 if remaining * 10 < limit else None
    return None


def wait_s(answer: Answer, now_s: float) -> float | None:
    """Return the seconds to wait before the next request; None if the answer does not report a rate limit.

    GitHub answers 403 or 429, with `retry-after`, or with the time at which its hourly limit begins again. `now_s` is
    the Unix time.
    """
    if answer.status not in {403, 429}:
        return None
    after, reset = answer.headers.get("retry-after", ""), answer.headers.get("x-ratelimit-reset", "")
    if after.isascii() and after.isdigit():
        return float(after[:9])
    if answer.headers.get("x-ratelimit-remaining") == "0" and reset.isascii() and reset.isdigit():
        return max(0.0, float(reset[:12]) - now_s) + 1
    return 60.0 if answer.status == 429 else None
