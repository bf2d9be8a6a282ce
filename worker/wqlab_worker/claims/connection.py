"""Requests to the server's worker API, and how they are repeated.

They are repeated with back-off after transport errors and 5xx responses, because each of them is idempotent on the
server. They are not repeated after a 409, which means that the fence is stale and another worker holds the job.
"""

from __future__ import annotations

import random
import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import structlog

from wqlab_contracts.enums import ErrorKind, JobKind
from wqlab_contracts.messages import Failure, Message, protocol

log = structlog.get_logger()


class StaleFence(Exception):
    """The server answered 409: this worker does not hold the claim (any more)."""


class ServerRefused(Exception):
    """The server answered with a 4xx status other than 409; repeating the request would not help."""


@dataclass(frozen=True)
class JobRef:
    """A claimed job. Later requests carry `fence`, with which the server checks the claim."""

    kind: JobKind
    id: int
    fence: int

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class Connection:
    """Connection to one server. Thread-safe.

    Each call is repeated for at most `retry_s` seconds before its last error is raised.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        worker: str,
        lab: str,
        ca_file: Path | None = None,
        retry_s: float = 120.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._worker = worker
        self._lab = lab
        self._retry_s = retry_s
        self._http = httpx.Client(
            base_url=url.rstrip("/") + "/api/worker/v1/",
            headers={"Authorization": f"Bearer {token}", **protocol.headers()},
            timeout=httpx.Timeout(30.0, connect=5.0),
            verify=True if ca_file is None else ssl.create_default_context(cafile=ca_file),
            transport=transport,
        )

    def close(self) -> None:
        self._http.close()

    def _post(
        self, path: str, message: Message, retry_s: float | None = None, timeout_s: float | None = None
    ) -> httpx.Response:
        content = message.model_dump_json().encode()
        return self._send(
            "POST",
            path,
            headers={"Content-Type": "application/json"},
            body=lambda: content,
            retry_s=retry_s,
            timeout_s=timeout_s,
        )

    def _send(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        retry_s: float | None = None,
        timeout_s: float | None = None,
    ) -> httpx.Response:
        deadline = time.monotonic() + (self._retry_s if retry_s is None else retry_s)
        delay = 0.25
        while True:
            try:
                response = self._http.request(
                    method,
                    path,
                    params=params,
                    headers=headers,
                    content=body() if body else None,
                    timeout=httpx.USE_CLIENT_DEFAULT if timeout_s is None else timeout_s,
                )
                check_status(response)
                return response
            except (httpx.TransportError, ServerError) as error:
                pause = delay * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
                if time.monotonic() + pause > deadline:
                    raise
                log.warning("request failed; repeating it", method=method, path=path, error=repr(error))
                time.sleep(pause)
                delay = min(delay * 2, 8.0)


class ServerError(httpx.TransportError):
    """A 5xx or 429 response, which is treated like no response."""


class ServerFull(ServerError):
    """The server had no space for the request (507), also after its repetitions."""

    @property
    def failure(self) -> Failure:
        """The failure of a job that needed the request."""
        return Failure(
            kind=ErrorKind.INFRASTRUCTURE,
            summary=f"the server has no space left: {self}"[:1000],
            advice="The lab's operator makes space (`wqlab-lab storage` lists what uses it); then run `wqlab retry`.",
        )


def check_status(response: httpx.Response) -> None:
    """Raise StaleFence, ServerError or ServerRefused for an error response."""
    if response.status_code == 409:
        raise StaleFence(_detail(response))
    if response.status_code == httpx.codes.INSUFFICIENT_STORAGE:
        raise ServerFull(_detail(response))
    if response.status_code >= 500 or response.status_code == 429:
        raise ServerError(f"{response.status_code} {_detail(response)}")
    if response.status_code >= 400:
        raise ServerRefused(f"{response.request.method} {response.request.url.path}: {_detail(response)}")


def _detail(response: httpx.Response) -> str:
    """Return the message of an error response."""
    try:
        problem = response.json()
        return str(problem.get("detail") or problem.get("title") or response.text[:500])
    except (ValueError, AttributeError):
        return response.text[:500]
