"""Errors as problem documents, limits, cursors and the live data folder; no database needed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from wqlab_contracts.api.submissions import Problem
from wqlab_contracts.loading import DataError
from wqlab_server.http import problems
from wqlab_server.http.limits import BodyLimit, RateLimit
from wqlab_server.http.paging import Before, decode_cursor, encode_cursor
from wqlab_server.http.problems import ApiProblem, json_pointer
from wqlab_server.http.sse import server_sent_event
from wqlab_server.storage.live_data import LiveData


class Body(BaseModel):
    names: list[int]
    model_config = {"extra": "forbid"}


def app() -> FastAPI:
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

    app.add_middleware(BodyLimit, limit=100)
    return app


async def ask(method: str, url: str, app: Any = None, **options: Any) -> httpx.Response:
    transport = httpx.ASGITransport(app=app or globals()["app"](), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://lab") as client:
        return await client.request(method, url, **options)


async def problem_of(method: str, url: str, **options: Any) -> Problem:
    answer = await ask(method, url, **options)
    assert answer.headers["content-type"] == "application/problem+json"
    problem = Problem.model_validate_json(answer.content)
    assert problem.status == answer.status_code
    return problem


def run(coroutine: Any) -> Any:
    import asyncio

    return asyncio.run(coroutine)


def test_validation_errors_are_all_listed_by_pointer() -> None:
    problem = run(problem_of("POST", "/api/v1/body", json={"names": [1, "x", "y"], "nmes": 1}))
    assert problem.status == 422
    assert [error["pointer"] for error in problem.errors] == ["/names/1", "/names/2", "/nmes"]
    assert "remove it" in problem.errors[2]["detail"]


def test_a_body_that_is_no_json_is_a_bad_request() -> None:
    problem = run(problem_of("POST", "/api/v1/body", content=b"{", headers={"content-type": "application/json"}))
    assert (problem.status, problem.type) == (400, "urn:wqlab:problem:bad-request")


@pytest.mark.parametrize(
    ("url", "status", "words"),
    [
        ("/api/v1/fail?how=http", 403, "not yours"),
        ("/api/v1/fail?how=problem", 409, "already finished"),
        ("/api/v1/fail?how=crash", 500, "log"),
        ("/api/v1/nothing", 404, "/api/v1/nothing"),
        ("/api/v1/page?cursor=zzz", 422, "not a cursor"),
        ("/api/v1/body", 405, "Method"),
    ],
)
def test_every_error_is_a_problem(url: str, status: int, words: str) -> None:
    problem = run(problem_of("GET", url))
    assert problem.status == status
    assert words in problem.detail
    assert "secret" not in problem.detail


def test_a_large_body_is_refused_by_its_declared_length_and_while_it_comes() -> None:
    assert run(problem_of("POST", "/api/v1/body", content=b"x" * 101)).status == 413

    async def chunks() -> Any:
        for _ in range(20):
            yield b"[" * 10

    headers = {"content-type": "application/json"}
    assert run(problem_of("POST", "/api/v1/body", content=chunks(), headers=headers)).status == 413
    assert run(ask("POST", "/api/v1/body", json={"names": [1]})).status_code == 200


def test_the_rate_limit_is_per_client_and_refills() -> None:
    now = 0.0
    limit = RateLimit(FastAPI(), per_s=2, burst=3, clock=lambda: now)
    assert [limit.take(b"a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert limit.take(b"a") == pytest.approx(0.5)
    assert limit.take(b"b") == 0.0
    now = 0.5
    assert limit.take(b"a") == 0.0
    assert limit.take(b"a") > 0


def test_a_client_over_the_limit_is_told_when_to_come_back() -> None:
    limited = RateLimit(app(), per_s=1, burst=1, clock=lambda: 0.0)
    assert run(ask("GET", "/api/v1/page", app=limited)).status_code == 200
    refused = run(ask("GET", "/api/v1/page", app=limited))
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")


def test_cursors_survive_the_round_trip_and_nothing_else_passes() -> None:
    assert decode_cursor(encode_cursor(42)) == 42
    for bad in ("", "zzz", "é", encode_cursor(0), encode_cursor(2**40), "YmVmb3JlOi0x"):
        with pytest.raises(ApiProblem):
            decode_cursor(bad)


def test_json_pointer_escapes() -> None:
    assert json_pointer(["a/b", 0, "c~d"]) == "/a~1b/0/c~0d"


def test_server_sent_event_framing() -> None:
    assert server_sent_event(event="x", data="a\nb", event_id=3) == "id: 3\nevent: x\ndata: a\ndata: b\n\n"


# --- the data folder --------------------------------------------------------------------------------------------

TINY = """\
name: tiny
summary: two CPUs
arch: x86_64
topology: {sockets: 1, l3_per_socket: 1, cores_per_l3: 2, threads_per_core: 1}
units: [{name: tiny-1}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "device-types/tiny.yaml": TINY,
        "kernels/trees.yaml": "default: t\ntrees: [{name: t, summary: s, url: https://example.org/t.git}]\n",
        "kernels/recipes/measure.yaml": "name: measure\nsummary: s\nfragments: [base]\n",
        "kernels/fragments/base.config": "CONFIG_SMP=y\n",
        "testplans/health-check/plan.yaml": (
            "name: health-check\nsummary: s\nscript: check.sh\nparser: health\nchecks_health: true\n"
            "scenarios: [{name: alive, summary: s}]\nreference_setting: ''\n"
            "hardware: {settings: ['']}\nemulated: {settings: ['']}\nmetrics: []\n"
        ),
        "testplans/health-check/check.sh": "true\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


class Clock:
    now = 0.0

    def __call__(self) -> float:
        self.now += 10
        return self.now


def test_an_added_device_type_is_picked_up(folder: Path) -> None:
    data = LiveData(folder, Clock())
    assert set(data.current().device_types) == {"tiny"}
    (folder / "device-types" / "big.yaml").write_text(TINY.replace("tiny", "big"))
    assert set(data.current().device_types) == {"tiny", "big"}
    assert data.problems() == []


def test_a_broken_file_keeps_the_last_good_content_and_is_named(folder: Path) -> None:
    data = LiveData(folder, Clock())
    good = data.current()
    path = folder / "device-types" / "tiny.yaml"
    path.write_text(TINY.replace("summary", "sumary"))
    assert data.current() is good
    assert any("device-types/tiny.yaml:2" in problem for problem in data.problems())
    path.write_text(TINY.replace("two CPUs", "a pair"))
    os.utime(path, ns=(1, 1))
    assert data.current().device_types["tiny"].summary == "a pair"
    assert data.problems() == []


def test_a_load_that_breaks_is_shown_and_tried_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = LiveData(folder, Clock())
    good = data.current()
    path = folder / "device-types" / "tiny.yaml"
    path.write_text(TINY.replace("two CPUs", "a pair of CPUs"))
    with monkeypatch.context() as broken:
        broken.setattr("wqlab_server.storage.live_data.load_data", lambda _path: {}["surprise"])
        assert data.current() is good
        assert data.problems() == ["the data folder cannot be loaded: KeyError('surprise')"]
    assert data.current().device_types["tiny"].summary == "a pair of CPUs"
    assert data.problems() == []


def test_a_folder_that_never_was_good_raises(tmp_path: Path) -> None:
    data = LiveData(tmp_path, Clock())
    with pytest.raises(DataError):
        data.current()
    assert data.problems()
