"""HTTP to one lab: authorisation, retries with back-off, and answers turned into models or errors."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from wqlab_contracts.api.submissions import Problem

from .errors import LabUnavailable, RequestRefused, StreamSilent, UsageError, WqlabError

T = TypeVar("T")
Params = Mapping[str, str | int | None]

BUSY = frozenset({429, 502, 503, 504})
"""Answers that a repetition may cure."""
REFUSED_UNSEEN = frozenset({429, 503})
"""Of those, the ones which say that the request was not acted upon."""
ERROR_BODY_LIMIT = 1_000_000


@dataclass(frozen=True)
class Retry:
    """How long to keep trying. The wait doubles from `first_wait_s` up to `longest_wait_s`, with jitter."""

    attempts: int = 6
    first_wait_s: float = 0.5
    longest_wait_s: float = 15.0

    def wait_s(self, attempt: int, retry_after: str | None = None) -> float:
        """Seconds before attempt number `attempt` + 1; a Retry-After in seconds wins, up to a minute."""
        if retry_after is not None and retry_after.isdigit():
            return min(float(retry_after), 60.0)
        longest = min(self.first_wait_s * 2.0 ** min(attempt - 1, 30), self.longest_wait_s)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311


ONCE = Retry(attempts=1)


class Transport:
    """Thread-safe. `sleep` and `on_retry` exist for tests and for telling people why nothing happens."""

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
                raise UsageError("the API token holds characters no token has", "copy it again, without line breaks")
            headers["Authorization"] = f"Bearer {token}"
        self.url = url.rstrip("/")
        self.retry = retry
        self._sleep = sleep
        self._on_retry = on_retry
        # No redirects: the token must not follow one to another host.
        self._http = httpx.Client(
            headers=headers, timeout=httpx.Timeout(timeout_s, connect=10.0), follow_redirects=False
        )

    def close(self) -> None:
        self._http.close()

    def wait(self, seconds: float, why: str) -> None:
        """Tell `on_retry`, then sleep."""
        if self._on_retry is not None:
            self._on_retry(f"{why}; next try in {seconds:.1f} s")
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
        """A successful response.

        `what` names the attempt in errors ("cancel submission 3"). `repeatable`: doing it twice does no harm (by
        default true for GET); otherwise it is repeated only where the server cannot have acted on it.
        Raises RequestRefused for 4xx, LabUnavailable for everything else that is not an answer.
        """
        retry = retry or self.retry
        safe = method == "GET" if repeatable is None else repeatable
        sent = {"Accept": "application/json", **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        attempt = 0
        while True:
            attempt += 1
            after = None
            try:
                response = self._http.request(
                    method, self.url + path, params=_present(params), content=body, headers=sent
                )
            except httpx.TransportError as error:
                problem: WqlabError = unreachable(self.url, what, error)
                again = safe or isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            else:
                if response.is_success:
                    return response
                problem = refusal(self.url, what, response, response.content)
                again = response.status_code in (BUSY if safe else REFUSED_UNSEEN)
                after = response.headers.get("retry-after")
            if not again or attempt >= retry.attempts:
                raise problem
            self.wait(retry.wait_s(attempt, after), problem.summary)

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
        """One streamed GET, not repeated; `silence_s` without a byte ends it.

        Raises as `call` does; transport errors while the body is read become LabUnavailable too.
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
    """The body as `model`. Fields that a newer server adds are ignored.

    Raises LabUnavailable when the body is something else: the other end is no wqlab server, or one of another age.
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
    reason = str(error) or type(error).__name__
    if isinstance(error, httpx.TimeoutException):
        reason = "no answer in time"
    return LabUnavailable(
        f"{what}: cannot reach {url} ({reason})", "check the URL and the network, and that the lab is up"
    )


def refusal(url: str, what: str, response: httpx.Response, body: bytes) -> WqlabError:
    """The error that a response with an error status and this body stands for."""
    status = response.status_code
    problem = _problem(response, body)
    if status in {400, 409, 413, 422}:
        return RequestRefused(what, problem)
    if status == 401:
        return RequestRefused(what, problem, f"log in with `wqlab login {url}` or set WQLAB_TOKEN to a valid token")
    if status == 403:
        return RequestRefused(what, problem, "ask an administrator of the lab for a token with that scope")
    if status == 404:
        return RequestRefused(what, problem, "check the id or name, and that the URL is the lab's")
    if 300 <= status < 400:
        target = response.headers.get("location", "elsewhere")
        return RequestRefused(what, problem, f"the server redirects to {target}: use that URL if you trust it")
    if 400 <= status < 500 and status not in BUSY:
        return RequestRefused(what, problem)
    return LabUnavailable(
        f"{what}: {url} answered {status} {problem.title}" + (f" ({problem.detail})" if problem.detail else ""),
        "try again later; if it stays, the lab's operator has to look",
    )


def _problem(response: httpx.Response, body: bytes) -> Problem:
    if "json" in response.headers.get("content-type", ""):
        try:
            return TypeAdapter(Problem).validate_json(body, extra="ignore")
        except ValidationError:
            pass
    return Problem(type="about:blank", title=response.reason_phrase or "error", status=response.status_code, detail="")


def _bounded_body(response: httpx.Response) -> bytes:
    """The start of a streamed error answer: an endless one must not fill the memory."""
    kept = b""
    for chunk in response.iter_bytes():
        kept += chunk
        if len(kept) > ERROR_BODY_LIMIT:
            break
    return kept[:ERROR_BODY_LIMIT]


def _present(params: Params | None) -> dict[str, Any] | None:
    return {key: value for key, value in params.items() if value is not None} if params else None
