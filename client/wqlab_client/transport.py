"""HTTP requests to one server: authorization, retries with back-off, and decoding of answers and errors."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from wqlab_contracts.api.base import Problem

from .errors import LabUnavailable, RequestRefused, StreamSilent, UsageError, WqlabError

T = TypeVar("T")
Params = Mapping[str, str | int | None]

RETRY_STATUSES = frozenset({429, 502, 503, 504})
"""Statuses after which an idempotent request is sent again."""
NOT_PROCESSED_STATUSES = frozenset({429, 503})
"""Statuses which say that the request was not processed, so that any request may be sent again."""
QUOTA_PROBLEM = "urn:wqlab:problem:quota"
"""Type of the problem of a used-up quota, which takes hours to recover."""
ERROR_BODY_LIMIT = 1_000_000


@dataclass(frozen=True)
class Retry:
    """Retry policy. The wait doubles from `first_wait_s` up to `longest_wait_s` seconds, with jitter."""

    attempts: int = 6
    first_wait_s: float = 0.5
    longest_wait_s: float = 15.0

    def wait_s(self, attempt: int, retry_after: str | None = None) -> float:
        """Return the seconds to wait before attempt `attempt` + 1; a Retry-After in seconds wins, up to a minute."""
        if retry_after is not None and retry_after.isdigit():
            return min(float(retry_after), 60.0)
        longest = min(self.first_wait_s * 2.0 ** min(attempt - 1, 30), self.longest_wait_s)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311


ONCE = Retry(attempts=1)


class Transport:
    """HTTP connection to one server; thread-safe.

    `on_retry` is called with the reason before each wait; `sleep` waits (tests replace it).
    """

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        retry: Retry,
        timeout_s: float,
        user_agent: str,
        on_retry: Callable[[str], None] | None = None,
        sleep: Callable[[float], None],
    ) -> None:
        headers = {"User-Agent": user_agent}
        if token:
            if not token.isascii() or not token.isprintable():
                raise UsageError("the API token contains invalid characters", "copy it again, without line breaks")
            headers["Authorization"] = f"Bearer {token}"
        self.url = url.rstrip("/")
        self.retry = retry
        self._sleep = sleep
        self._on_retry = on_retry
        # Redirects are not followed: the token must not be sent to another host.
        self._http = httpx.Client(
            headers=headers, timeout=httpx.Timeout(timeout_s, connect=10.0), follow_redirects=False
        )

    def close(self) -> None:
        self._http.close()

    def wait(self, seconds: float, reason: str) -> None:
        """Call `on_retry`, then sleep."""
        if self._on_retry is not None:
            self._on_retry(f"{reason}; next try in {seconds:.1f} s")
        self._sleep(seconds)

    def call(
        self,
        method: str,
        path: str,
        *,
        what: str,
        params: Params | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool | None = None,
        retry: Retry | None = None,
    ) -> httpx.Response:
        """Send a request and return the successful response.

        `what` names the request in errors ("cancel submission 3"). `repeatable`: the request is idempotent (by default
        true for GET); another one is retried only if the server cannot have processed it.
        Raises RequestRefused for 4xx, LabUnavailable for every other failure.
        """
        retry = retry or self.retry
        repeatable = method == "GET" if repeatable is None else repeatable
        sent = {"Accept": "application/json", **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        attempt = 0
        while True:
            attempt += 1
            retry_after = None
            try:
                response = self._http.request(
                    method, self.url + path, params=_present(params), content=body, headers=sent
                )
            except httpx.TransportError as error:
                problem: WqlabError = unreachable(self.url, what, error)
                may_retry = repeatable or isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            else:
                if response.is_success:
                    return response
                problem = refusal(self.url, what, response, response.content)
                may_retry = response.status_code in (RETRY_STATUSES if repeatable else NOT_PROCESSED_STATUSES)
                may_retry = may_retry and not isinstance(problem, RequestRefused)
                retry_after = response.headers.get("retry-after")
            if not may_retry or attempt >= retry.attempts:
                raise problem
            self.wait(retry.wait_s(attempt, retry_after), problem.summary)

    @contextmanager
    def stream(
        self,
        path: str,
        *,
        what: str,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
        silence_s: float = 60.0,
    ) -> Iterator[httpx.Response]:
        """Stream the response of one GET, without retries.

        Raises StreamSilent after `silence_s` seconds without a byte, and otherwise the errors of `call`, also for
        transport errors while the body is read.
        """
        timeout = httpx.Timeout(silence_s, connect=10.0)
        try:
            with self._http.stream(
                "GET", self.url + path, params=_present(params), headers=dict(headers or {}), timeout=timeout
            ) as response:
                if not response.is_success:
                    raise refusal(self.url, what, response, _bounded_body(response))
                yield response
        except httpx.ReadTimeout as error:
            raise StreamSilent(f"{what}: nothing from {self.url} for {silence_s:.0f} s") from error
        except httpx.TransportError as error:
            raise unreachable(self.url, what, error) from error


def decode(model: type[T], response: httpx.Response, what: str) -> T:
    """Decode the body as `model`. Fields that a newer server adds are ignored.

    Raises LabUnavailable if the body does not match: the URL is no wqlab server, or the server has another version.
    """
    try:
        return TypeAdapter(model).validate_json(response.content, extra="ignore")
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = "/".join(str(part) for part in first["loc"]) or "the body"
        raise LabUnavailable(
            f"{what}: the answer of {response.request.url} is not what this client expects ({where}: {first['msg']})",
            "check that the URL is a wqlab server and that client and server have the same version",
        ) from None


def unreachable(url: str, what: str, error: httpx.TransportError) -> LabUnavailable:
    """Return the error for a server that cannot be reached."""
    reason = str(error) or type(error).__name__
    if isinstance(error, httpx.TimeoutException):
        reason = "no answer in time"
    return LabUnavailable(
        f"{what}: cannot reach {url} ({reason})", "check the URL and the network, and that the lab is up"
    )


def refusal(url: str, what: str, response: httpx.Response, body: bytes) -> WqlabError:
    """Return the error for a response with an error status."""
    status = response.status_code
    problem = _problem(response, body)
    if status in {400, 409, 413, 422}:
        return RequestRefused(what, problem)
    if status == 429 and problem.type == QUOTA_PROBLEM:
        return RequestRefused(what, problem, "see what is left with `wqlab quota`")
    if status == 401:
        return RequestRefused(what, problem, f"log in with `wqlab login {url}` or set WQLAB_TOKEN to a valid token")
    if status == 403:
        return RequestRefused(what, problem, "ask an administrator of the lab for a token with that scope")
    if status == 404:
        return RequestRefused(what, problem, "check the id or name, and that the URL is the lab's")
    if 300 <= status < 400:
        target = response.headers.get("location", "elsewhere")
        return RequestRefused(what, problem, f"the server redirects to {target}: use that URL if you trust it")
    if 400 <= status < 500 and status not in RETRY_STATUSES:
        return RequestRefused(what, problem)
    return LabUnavailable(
        f"{what}: {url} answered {status} {problem.title}" + (f" ({problem.detail})" if problem.detail else ""),
        "try again later; if it persists, tell the lab's operator",
    )


def _problem(response: httpx.Response, body: bytes) -> Problem:
    if "json" in response.headers.get("content-type", ""):
        try:
            return TypeAdapter(Problem).validate_json(body, extra="ignore")
        except ValidationError:
            pass
    return Problem(type="about:blank", title=response.reason_phrase or "error", status=response.status_code, detail="")


def _bounded_body(response: httpx.Response) -> bytes:
    """Read at most ERROR_BODY_LIMIT bytes of a streamed error response, so that it cannot fill the memory."""
    body = b""
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > ERROR_BODY_LIMIT:
            break
    return body[:ERROR_BODY_LIMIT]


def _present(params: Params | None) -> dict[str, Any] | None:
    return {key: value for key, value in params.items() if value is not None} if params else None
