"""A small application with the error handlers and the body limit, without a database."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from wqlab_contracts.api.base import Problem
from wqlab_server.http import problems
from wqlab_server.http.limits import BodyLimit
from wqlab_server.http.paging import Before
from wqlab_server.http.problems import ApiProblem


class Body(BaseModel):
    names: list[int]
    model_config = {"extra": "forbid"}


def small_app() -> FastAPI:
    app = FastAPI()
    problems.install(app)

    @app.post("/api/v1/body")
    def body(body: Body) -> int:
        return len(body.names)

    @app.get("/api/v1/page")
    def page(before: Before) -> int | None:
        return before

    @app.get("/api/v1/fail")
    def fail(how: str) -> None:
        if how == "http":
            raise HTTPException(403, "not yours")
        if how == "problem":
            raise ApiProblem(409, "already finished", slug="finished")
        raise RuntimeError("secret")

    app.add_middleware(BodyLimit, artifact_limit=100, anonymous=100)
    return app


async def request(method: str, url: str, app: Any = None, **options: Any) -> httpx.Response:
    """Send a request to `app`, by default a new small application."""
    transport = httpx.ASGITransport(app=app or small_app(), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://lab") as client:
        return await client.request(method, url, **options)


async def problem_of(method: str, url: str, **options: Any) -> Problem:
    """Send a request and return the problem document of its response."""
    answer = await request(method, url, **options)
    assert answer.headers["content-type"] == "application/problem+json"
    problem = Problem.model_validate_json(answer.content)
    assert problem.status == answer.status_code
    return problem


def run(coroutine: Any) -> Any:
    """Run a coroutine to its end."""
    return asyncio.run(coroutine)
