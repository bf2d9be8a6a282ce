"""Limits of the public API per client: bytes per request, requests per second."""

from __future__ import annotations

import hashlib
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .problems import ApiProblem, response

BODY_LIMIT = 24_000_000
"""Bytes; a series mailbox may have 20 million characters (contracts MboxSeries), and JSON escapes need some more."""
REQUESTS_PER_S = 50.0
BURST = 300
PUBLIC_PREFIX = "/api/v1"
REPORT_PREFIX = "/r/"


class BodyLimit:
    """ASGI middleware that refuses bodies above `limit` bytes with 413: by declared length, or while receiving."""

    def __init__(self, app: ASGIApp, limit: int = BODY_LIMIT, prefix: str = PUBLIC_PREFIX) -> None:
        self.app, self.limit, self.prefix = app, limit, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(self.prefix):
            await self.app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"")
        if declared.isdigit() and int(declared) > self.limit:
            await response(self._problem())(scope, receive, send)
            return
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.limit:
                problem = self._problem()
                raise HTTPException(problem.status, problem.detail)  # the only exception that body readers pass on
            return message

        await self.app(scope, receive_limited, send)

    def _problem(self) -> ApiProblem:
        megabytes = self.limit // 1_000_000
        return ApiProblem(
            413, f"a request body may have at most {megabytes} MB; give a large series as a git URL and branch"
        )


@dataclass
class _Bucket:
    tokens: float
    filled_at: float


class RateLimit:
    """ASGI middleware with a token bucket per bearer token (per address without one), kept in this process."""

    _MAX_CLIENTS = 10_000

    def __init__(
        self,
        app: ASGIApp,
        per_s: float = REQUESTS_PER_S,
        burst: int = BURST,
        prefix: tuple[str, ...] = (PUBLIC_PREFIX, REPORT_PREFIX),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.app, self.per_s, self.burst, self.prefix, self.clock = app, per_s, burst, prefix, clock
        self._buckets: OrderedDict[bytes, _Bucket] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(self.prefix):
            wait_s = self.take(self._client(scope))
            if wait_s > 0:
                problem = ApiProblem(
                    429,
                    f"too many requests: more than {self.per_s:g} a second; wait {wait_s:.1f} s",
                    headers={"Retry-After": str(math.ceil(wait_s))},
                )
                await response(problem)(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def take(self, client: bytes) -> float:
        """Count one request of `client`. Return 0.0 if it is allowed, else the seconds to wait."""
        now = self.clock()
        bucket = self._buckets.pop(client, None) or _Bucket(float(self.burst), now)
        bucket.tokens = min(self.burst, bucket.tokens + (now - bucket.filled_at) * self.per_s)
        bucket.filled_at = now
        self._buckets[client] = bucket
        while len(self._buckets) > self._MAX_CLIENTS:
            self._buckets.popitem(last=False)
        if bucket.tokens < 1:
            return (1 - bucket.tokens) / self.per_s
        bucket.tokens -= 1
        return 0.0

    @staticmethod
    def _client(scope: Scope) -> bytes:
        authorization = dict(scope["headers"]).get(b"authorization")
        if authorization:
            return hashlib.sha256(authorization).digest()
        address = scope.get("client")
        return str(address[0] if address else "").encode()
