"""Limits of request size and request rate."""

from __future__ import annotations

import secrets as random
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI

from wqlab_contracts.enums import Scope
from wqlab_server.http.auth import PREFIX
from wqlab_server.http.limits import ANONYMOUS_BODY_LIMIT, BURST, RateLimit

from ..support.live_server import Live, expect
from ..support.problem_app import problem_of, request, run, small_app
from ..support.scene import MBOX, REQUEST


def test_large_body_without_credentials_is_refused_by_declared_length_and_while_receiving() -> None:
    assert run(problem_of("POST", "/api/v1/body", content=b"x" * 101)).status == 401

    async def chunks() -> Any:
        for _ in range(20):
            yield b"[" * 10

    headers = {"content-type": "application/json"}
    assert run(problem_of("POST", "/api/v1/body", content=chunks(), headers=headers)).status == 401
    assert run(request("POST", "/api/v1/body", json={"names": [1]})).status_code == 200


def test_rate_limit_is_per_client_and_refills() -> None:
    now = 0.0
    limit = RateLimit(FastAPI(), per_s=2, burst=3, clock=lambda: now)
    assert [limit.take("a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert limit.take("a") == pytest.approx(0.5)
    assert limit.take("b") == 0.0
    now = 0.5
    assert limit.take("a") == 0.0
    assert limit.take("a") > 0


def test_refused_client_gets_a_retry_after_header() -> None:
    limited = RateLimit(small_app(), per_s=1, burst=1, clock=lambda: 0.0)
    assert run(request("GET", "/api/v1/page", app=limited)).status_code == 200
    refused = run(request("GET", "/api/v1/page", app=limited))
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")


pytestmark = pytest.mark.integration


def test_submission_above_the_body_limit_is_refused(client: httpx.Client) -> None:
    huge = REQUEST | {"series": {"mbox": {"text": MBOX + "x" * 25_000_000}}}
    answer = expect(client.post("/api/v1/submissions", json=huge), 413)
    assert "git URL" in answer.json()["detail"]


def status_before_body(live: Live, method: str, path: str, token: str | None) -> int:
    """Send the head of a request that declares a body of 20 MB, and return the status of the response to it."""
    parts = urlsplit(live.url)
    lines = [f"{method} {path} HTTP/1.1", f"Host: {parts.netloc}", "Content-Type: application/json"]
    lines += ["Content-Length: 20000000", *([f"Authorization: Bearer {token}"] if token else [])]
    with socket.create_connection((str(parts.hostname), int(parts.port or 0))) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(connection.recv(100).split()[1])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/submissions"),
        ("POST", "/api/v1/session"),
        ("POST", "/api/worker/v1/jobs/1/events"),
        ("PUT", "/api/worker/v1/artifacts/" + "0" * 64),
        ("POST", "/healthz"),
        ("POST", "/submit"),
    ],
)
@pytest.mark.parametrize("token", [None, PREFIX + "0" * 43])
def test_large_body_is_refused_before_it_is_read_without_a_valid_token(
    live: Live, method: str, path: str, token: str | None
) -> None:
    assert status_before_body(live, method, path, token) == 401


def test_worker_body_is_limited(live: Live) -> None:
    with live.client(Scope.WORKER) as worker:
        body = b'{"fence": 1, "events": [' + b" " * 25_000_000 + b"]}"
        headers = {"Content-Type": "application/json"}
        answer = expect(worker.post("/api/worker/v1/jobs/1/events", content=body, headers=headers), 413)
        assert answer.json()["type"] == "urn:wqlab:problem:too-large"
        small = b'{"fence": 1, "events": [' + b" " * 2 * ANONYMOUS_BODY_LIMIT + b"]}"
        expect(worker.post("/api/worker/v1/jobs/1/events", content=small, headers=headers), 404)


@pytest.fixture
def frozen(live: Live) -> Live:
    """The live application with a stopped clock of its limits: a slow machine must not refill them."""
    layer: Any = live.app.middleware_stack
    while not isinstance(layer, RateLimit):
        layer = layer.app
    layer.clock = lambda: 0.0
    return live


def test_invented_tokens_share_the_limit_of_their_address(frozen: Live) -> None:
    with frozen.client(None) as stranger, frozen.client(Scope.READ) as reader:
        expect(reader.get("/api/v1/plans"))
        for _ in range(4 * BURST):
            headers = {"Authorization": f"Bearer {PREFIX}{random.token_urlsafe(32)}"}
            refused = stranger.get("/api/v1/plans", headers=headers)
            if refused.status_code != 401:
                break
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        expect(reader.get("/api/v1/plans"))


def test_large_bodies_count_as_many_requests(frozen: Live) -> None:
    large = {"text": MBOX + "x" * 10_000_000}
    with frozen.client(Scope.READ) as reader:
        statuses = [reader.post("/api/v1/plans", json=large).status_code for _ in range(12)]
    assert statuses[0] == 405
    assert 429 in statuses
