"""Limits of request size and request rate."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from wqlab_server.http.limits import RateLimit

from ..support.live_server import expect
from ..support.problem_app import problem_of, request, run, small_app
from ..support.scene import MBOX, REQUEST


def test_large_body_is_refused_by_declared_length_and_while_receiving() -> None:
    assert run(problem_of("POST", "/api/v1/body", content=b"x" * 101)).status == 413

    async def chunks() -> Any:
        for _ in range(20):
            yield b"[" * 10

    headers = {"content-type": "application/json"}
    assert run(problem_of("POST", "/api/v1/body", content=chunks(), headers=headers)).status == 413
    assert run(request("POST", "/api/v1/body", json={"names": [1]})).status_code == 200


def test_rate_limit_is_per_client_and_refills() -> None:
    now = 0.0
    limit = RateLimit(FastAPI(), per_s=2, burst=3, clock=lambda: now)
    assert [limit.take(b"a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert limit.take(b"a") == pytest.approx(0.5)
    assert limit.take(b"b") == 0.0
    now = 0.5
    assert limit.take(b"a") == 0.0
    assert limit.take(b"a") > 0


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
