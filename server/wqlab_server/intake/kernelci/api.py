"""Client of KernelCI's API: events, nodes and job definitions. Sizes and times are limited."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpcore
import httpx

from ...http.guarded_network import AddressRefused, GuardedBackend, Resolve, resolve

EVENTS_PAGE = 1000
"""Most events that the API sends with their nodes."""
EVENTS_LIMIT = 64 << 20
"""Bytes of a page of events."""
NODE_LIMIT = 4 << 20
DEFINITION_LIMIT = 1 << 20
LIMIT_S = 30.0
"""Time for a request with its answer."""

Node = dict[str, Any]


class KernelCiError(Exception):
    """A request that failed; the text says why. Another attempt can succeed."""


class NotFound(KernelCiError):
    """KernelCI has no such node."""


class Refused(KernelCiError):
    """KernelCI understood the request and refused it."""


class KernelCi:
    """HTTP client of KernelCI's API. It follows no redirects, which could send the token to another server."""

    def __init__(self, url: str, token: str, *, limit_s: float = LIMIT_S, find: Resolve = resolve) -> None:
        self._url = url.rstrip("/")
        self._limit_s = limit_s
        self._find = find
        self._client = httpx.Client(trust_env=False, follow_redirects=False, timeout=limit_s)
        self._token = {"Authorization": f"Bearer {token}"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._client.close()

    def events(self, after: datetime) -> list[dict[str, Any]]:
        """Return up to EVENTS_PAGE events of available jobs with a later timestamp, each with its node as it is now."""
        query = {
            "state": "available",
            "kind": "job",
            "recursive": "true",
            "limit": str(EVENTS_PAGE),
            "from": after.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds"),
        }
        found = self._call("GET", f"{self._url}/events", EVENTS_LIMIT, params=query, headers=self._token)
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise KernelCiError("the events are not a list; check WQLAB_KERNELCI_URL")
        return found

    def node(self, node_id: str) -> Node:
        """Return a node. Raises NotFound if there is none."""
        found = self._call("GET", f"{self._url}/node/{node_id}", NODE_LIMIT, headers=self._token)
        if not isinstance(found, dict):
            raise NotFound(f"KernelCI has no node {node_id}")
        return found

    def put(self, node: Node) -> None:
        """Write a node. It must be the whole node as it was read: the API replaces missing fields by their defaults."""
        self._call("PUT", f"{self._url}/node/{node['id']}", NODE_LIMIT, headers=self._token, json=node)

    def definition(self, url: str) -> dict[str, Any]:
        """Return the job definition at a URL, from a public address or the API's own host.

        It is fetched without the token, since another server stores it.
        """
        if (problem := self.url_problem(url)) is not None:
            raise Refused(problem)
        found = _decoded(*self._fetch_public(url), url)
        if not isinstance(found, dict):
            raise Refused("the job definition is not a JSON object")
        return found

    def url_problem(self, url: str) -> str | None:
        """Return why a job definition is not fetched from a URL, or None.

        http is allowed only on the API's own host, as in KernelCI's development setup.
        """
        try:
            parts, own = urlsplit(url), urlsplit(self._url)
        except ValueError as error:
            return f"the job definition has no URL: {error}"
        local = parts.scheme == own.scheme == "http" and parts.hostname == own.hostname
        if not (parts.scheme == "https" or local) or not parts.hostname or parts.username or parts.password:
            return "the job definition has no https URL without user name"
        return None

    def _fetch_public(self, url: str) -> tuple[int, bytes]:
        """Return status and content. Whoever schedules jobs chooses the URL, so it must not reach the lab's network."""
        own = urlsplit(url).hostname == urlsplit(self._url).hostname
        network = GuardedBackend(private=own, limit_s=self._limit_s, find=self._find)
        tls = ssl.create_default_context()
        content = b""
        try:
            with (
                httpcore.ConnectionPool(ssl_context=tls, network_backend=network, retries=0) as pool,
                pool.stream("GET", url, headers=[("Host", urlsplit(url).netloc), ("User-Agent", "wqlab")]) as response,
            ):
                for chunk in response.iter_stream():
                    content += chunk
                    if len(content) > DEFINITION_LIMIT:
                        raise Refused(f"{_place(url)} sent more than {DEFINITION_LIMIT} bytes")
                return response.status, content
        except AddressRefused as error:
            raise Refused(f"the job definition is not fetched: {error}") from None
        except httpcore.TimeoutException:
            raise KernelCiError(f"{_place(url)} did not answer within {self._limit_s:g} s") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, ssl.SSLError, OSError) as error:
            raise KernelCiError(f"no connection to {_place(url)}: {error or type(error).__name__}") from None

    def _call(self, method: str, url: str, limit: int, **request: Any) -> Any:
        """Return the JSON of an answer. Raises KernelCiError or one of its kinds."""
        deadline = time.monotonic() + self._limit_s
        content = b""
        try:
            with self._client.stream(method, url, **request) as response:
                for chunk in response.iter_bytes():
                    content += chunk
                    if len(content) > limit:
                        raise Refused(f"{_place(url)} sent more than {limit} bytes")
                    if time.monotonic() > deadline:
                        raise KernelCiError(f"{_place(url)} did not answer within {self._limit_s:g} s")
        except httpx.TimeoutException:
            raise KernelCiError(f"{_place(url)} did not answer within {self._limit_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise KernelCiError(f"no connection to {_place(url)}: {error or type(error).__name__}") from None
        return _decoded(response.status_code, content, url)


def _decoded(status: int, content: bytes, url: str) -> Any:
    """Return the JSON of an answer. Raises KernelCiError or one of its kinds for another status."""
    _check_status(status, content, url)
    try:
        return json.loads(content)
    except ValueError:
        raise Refused(f"{_place(url)} did not answer with JSON") from None


def parse_time(text: object) -> datetime | None:
    """Return the timestamp of an event, which the API writes in UTC without a zone; None if it is no timestamp."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def child(value: object, *names: str) -> Any:
    """Return the value under `names` in nested objects; None if there is none."""
    for name in names:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _place(url: str) -> str:
    """Return host and path of a URL, for messages."""
    parts = urlsplit(url)
    return f"{parts.hostname}{parts.path}"


def _check_status(status: int, content: bytes, url: str) -> None:
    if status == 200:
        return
    try:
        detail = str(child(json.loads(content), "detail") or "")[:500]
    except ValueError:
        detail = ""
    told = f"{_place(url)} answered {status}{f': {detail}' if detail else ''}"
    if status == 404:
        raise NotFound(told)
    if status in {401, 403}:
        raise KernelCiError(f"{told}; the token's user must be in the group runtime:RUNTIME:node-editor")
    if status in {400, 413, 422}:
        raise Refused(told)
    raise KernelCiError(told)
