"""Limits per client: bytes per request and requests per second. They apply before a body is read.

A client is a verified token or session, else an address. An unverified token is not a client of its own: otherwise an
attacker could get a new limit with each invented token.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from fastapi import HTTPException, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wqlab_contracts.enums import Scope as TokenScope

from .auth import authenticate, bearer_token, remember, remembered
from .browser_sessions import COOKIE
from .problems import ApiProblem, response

BODY_LIMIT = 24_000_000
"""Bytes; a series mailbox may have 20 million characters (contracts MboxSeries), and JSON escapes need some more. 200
findings of a run, which a worker sends at once, fit too."""
ANONYMOUS_BODY_LIMIT = 64_000
"""Bytes without a valid token or session: enough to sign in or to join as a lab."""
FORGE_BODY_LIMIT = 2_000_000
"""Bytes of a forge's event, which has no token but a signature. A push names up to 2,048 commits."""
REQUESTS_PER_S = 50.0
BURST = 300
BYTES_PER_REQUEST = 200_000
"""Body bytes that count as one more request: reading a large body costs memory and time."""
LIMITED_PREFIXES = ("/api/", "/r/", "/readyz", "/metrics")
FORGE_PREFIX = "/api/v1/forges/"
ARTIFACT_PREFIX = "/api/worker/v1/artifacts/"
_CLIENT = "client"
"""Key of a request's state."""


def client_network(address: str) -> str:
    """Return the address, or its /64 network for IPv6: one host may use every address of its /64."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 6:
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)


def client_of(request: Request) -> str:
    """Return the key of the request's client: of its verified token or session, else of its address."""
    found: str | None = request.scope.get("state", {}).get(_CLIENT)
    return _address_key(request) if found is None else found


def _address_key(request: Request) -> str:
    return "address " + (client_network(request.client.host) if request.client is not None else "unknown")


def _credential_key(request: Request) -> str | None:
    """Return the key of the request's token or session, verified or not; None without one."""
    secret = bearer_token(request) or request.cookies.get(COOKIE) or request.cookies.get(f"__Host-{COOKIE}")
    return "credential " + hashlib.sha256(secret.encode()).hexdigest() if secret else None


class BodyLimit:
    """ASGI middleware that refuses a body above its sender's limit: by declared length, or while receiving.

    `limit` is that of a sender with a valid token or session, who gets 413; without one the limit is `anonymous` and
    the refusal 401. An artifact of a worker may have `artifact_limit` bytes. `RateLimit` must run before.
    """

    def __init__(
        self, app: ASGIApp, artifact_limit: int, limit: int = BODY_LIMIT, anonymous: int = ANONYMOUS_BODY_LIMIT
    ) -> None:
        self.app, self.artifact_limit, self.limit, self.anonymous = app, artifact_limit, limit, anonymous

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit, problem = self._limit_of(Request(scope))
        declared = dict(scope["headers"]).get(b"content-length", b"")
        if declared.isdigit() and int(declared) > limit:
            await response(problem)(scope, receive, send)
            return
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise HTTPException(problem.status, problem.detail)  # the only exception that body readers pass on
            return message

        await self.app(scope, receive_limited, send)

    def _limit_of(self, request: Request) -> tuple[int, ApiProblem]:
        """Return the limit of a request's body in bytes, and the refusal of a larger one."""
        if request.url.path.startswith(FORGE_PREFIX):
            detail = f"an event may have at most {FORGE_BODY_LIMIT // 1_000_000} MB"
            return FORGE_BODY_LIMIT, ApiProblem(413, detail)
        found = remembered(request)
        if found is None or found.principal is None:
            detail = (
                f"without a valid token or session, a request body may have at most {self.anonymous // 1000} kB; "
                "sign in, or send a token: Authorization: Bearer <token>"
            )
            return self.anonymous, (found.problem if found else None) or ApiProblem(401, detail)
        if request.url.path.startswith(ARTIFACT_PREFIX) and found.principal.may(TokenScope.WORKER):
            detail = f"an artifact may have at most {self.artifact_limit} bytes"
            return self.artifact_limit, ApiProblem(413, detail)
        megabytes = self.limit // 1_000_000
        detail = f"a request body may have at most {megabytes} MB; give a large series as a git URL and branch"
        return self.limit, ApiProblem(413, detail)


@dataclass
class _Bucket:
    tokens: float
    filled_at: float


class RateLimit:
    """ASGI middleware with a token bucket per client, kept in this process. It checks the request's credentials.

    A worker is not limited: the server has given it its jobs.
    """

    _MAX_CLIENTS = 10_000

    def __init__(
        self,
        app: ASGIApp,
        per_s: float = REQUESTS_PER_S,
        burst: int = BURST,
        prefix: tuple[str, ...] = LIMITED_PREFIXES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.app, self.per_s, self.burst, self.prefix, self.clock = app, per_s, burst, prefix, clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._verified: OrderedDict[str, bool] = OrderedDict()
        """Key of each credential that was valid at its last request -> is a worker's."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(self.prefix):
            request = Request(scope)
            wait_s = await self._admit(request)
            if wait_s > 0:
                problem = ApiProblem(
                    429,
                    f"too many requests: more than {self.per_s:g} a second; wait {wait_s:.1f} s",
                    headers={"Retry-After": str(math.ceil(wait_s))},
                )
                await response(problem)(scope, receive, send)
                return
        await self.app(scope, receive, send)

    async def _admit(self, request: Request) -> float:
        """Count the request and check its credentials. Return 0.0 if it is allowed, else the seconds to wait."""
        credential = _credential_key(request)
        is_worker = self._verified.get(credential) if credential is not None else None
        key = _address_key(request) if is_worker is None or credential is None else credential
        cost = _cost(request)
        if not is_worker and (wait_s := self.take(key, cost)) > 0:
            return wait_s
        if credential is None:
            return 0.0
        found = await run_in_threadpool(authenticate, request)
        remember(request, found)
        if found.principal is None:
            self._verified.pop(credential, None)
            return 0.0
        request.scope["state"][_CLIENT] = credential
        self._verified[credential] = found.principal.may(TokenScope.WORKER)
        self._verified.move_to_end(credential)
        while len(self._verified) > self._MAX_CLIENTS:
            self._verified.popitem(last=False)
        if key != credential:  # the address must not run out for the other users of a shared one
            self._give_back(key, cost)
        return 0.0

    def take(self, client: str, cost: float = 1.0) -> float:
        """Count a request of `client` as `cost` requests. Return 0.0 if it is allowed, else the seconds to wait."""
        now = self.clock()
        cost = min(cost, self.burst)
        bucket = self._buckets.pop(client, None) or _Bucket(float(self.burst), now)
        bucket.tokens = min(self.burst, bucket.tokens + (now - bucket.filled_at) * self.per_s)
        bucket.filled_at = now
        self._buckets[client] = bucket
        while len(self._buckets) > self._MAX_CLIENTS:
            self._buckets.popitem(last=False)
        if bucket.tokens < cost:
            return (cost - bucket.tokens) / self.per_s
        bucket.tokens -= cost
        return 0.0

    def _give_back(self, client: str, cost: float) -> None:
        if (bucket := self._buckets.get(client)) is not None:
            bucket.tokens = min(self.burst, bucket.tokens + cost)


def _cost(request: Request) -> float:
    """Return the number of requests that this one counts as. A body without a declared length counts as the largest."""
    declared = request.headers.get("content-length", "")
    if "chunked" in request.headers.get("transfer-encoding", "").lower():
        return 1 + BODY_LIMIT / BYTES_PER_REQUEST
    size = int(declared) if declared.isdigit() and len(declared) < 16 else 0
    return 1 + (size / BYTES_PER_REQUEST if size <= BODY_LIMIT else 0)  # a larger body is refused unread


class Slots:
    """Limit of requests in progress at once, per client and in all, for responses that take long. Thread-safe."""

    def __init__(self, what: str, *, per_client: int, total: int, retry_after_s: int = 5) -> None:
        """`what` names the responses in refusals: "event streams"."""
        self.what, self.per_client, self.total, self.retry_after_s = what, per_client, total, retry_after_s
        self._lock = threading.Lock()
        self._used: Counter[str] = Counter()

    @contextmanager
    def use(self, request: Request) -> Iterator[None]:
        """Hold a slot. Raises ApiProblem 429 if the client has all of its slots in use, and 503 if all are in use."""
        client = client_of(request)
        headers = {"Retry-After": str(self.retry_after_s)}
        with self._lock:
            if self._used[client] >= self.per_client:
                detail = f"you have {self.per_client} {self.what} in progress, the most that one client may have"
                raise ApiProblem(429, f"{detail}; wait until one has ended", headers=headers)
            if self._used.total() >= self.total:
                detail = f"the lab has {self.total} {self.what} in progress, the most that it serves at once"
                raise ApiProblem(503, f"{detail}; try again later", headers=headers)
            self._used[client] += 1
        try:
            yield
        finally:
            with self._lock:
                self._used[client] -= 1
                if not self._used[client]:
                    del self._used[client]


class SlotStream(StreamingResponse):
    """Streamed response that holds a slot until its end, or is replaced by the refusal."""

    def __init__(
        self,
        request: Request,
        slots: Slots,
        content: AsyncIterable[bytes] | Iterable[bytes],
        *,
        media_type: str,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(content, media_type=media_type, headers=headers)
        self._request, self._slots = request, slots

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with ExitStack() as stack:
            try:
                stack.enter_context(self._slots.use(self._request))
            except ApiProblem as problem:
                await response(problem)(scope, receive, send)
                return
            await super().__call__(scope, receive, send)


@dataclass(frozen=True)
class SlowResponses:
    """Slots of one application."""

    streams: Slots = field(default_factory=lambda: Slots("event and console streams", per_client=30, total=300))
    """Each stream needs memory, and a database query for each event."""
    reports: Slots = field(
        default_factory=lambda: Slots("reports and exports", per_client=3, total=10, retry_after_s=1)
    )
    """Each response occupies one of the API's 40 threads and one of its 30 database connections."""
    bundles: Slots = field(default_factory=lambda: Slots("bundles", per_client=2, total=6, retry_after_s=10))
    """Each response occupies one of the API's 40 threads and compresses up to some hundred MB."""
    inspections: Slots = field(default_factory=lambda: Slots("inspections", per_client=3, total=20, retry_after_s=2))
    scrapes: Slots = field(default_factory=lambda: Slots("health reports", per_client=2, total=4, retry_after_s=1))


def slow_responses(request: Request) -> SlowResponses:
    """Return the slots of the request's application."""
    found: SlowResponses = request.app.state.slow_responses
    return found
