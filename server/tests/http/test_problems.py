"""Errors as problem documents."""

from __future__ import annotations

import httpx
import pytest

from wqlab_server.http.problems import json_pointer

from ..support.live_server import expect
from ..support.problem_app import problem_of, run


def test_validation_errors_are_all_listed_by_pointer() -> None:
    problem = run(problem_of("POST", "/api/v1/body", json={"names": [1, "x", "y"], "nmes": 1}))
    assert problem.status == 422
    assert [error["pointer"] for error in problem.errors] == ["/names/1", "/names/2", "/nmes"]
    assert "remove it" in problem.errors[2]["detail"]


def test_body_that_is_not_json_is_a_bad_request() -> None:
    problem = run(problem_of("POST", "/api/v1/body", content=b"{", headers={"content-type": "application/json"}))
    assert (problem.status, problem.type) == (400, "urn:wqlab:problem:bad-request")


@pytest.mark.parametrize(
    ("url", "status", "words"),
    [
        ("/api/v1/fail?how=http", 403, "not yours"),
        ("/api/v1/fail?how=problem", 409, "already finished"),
        ("/api/v1/fail?how=crash", 500, "log"),
        ("/api/v1/nothing", 404, "/api/v1/nothing"),
        ("/api/v1/page?cursor=zzz", 422, "invalid cursor"),
        ("/api/v1/body", 405, "has no method GET; it has POST"),
    ],
)
def test_every_error_is_a_problem_document(url: str, status: int, words: str) -> None:
    problem = run(problem_of("GET", url))
    assert problem.status == status
    assert words in problem.detail
    assert "secret" not in problem.detail


def test_json_pointer_escapes_slash_and_tilde() -> None:
    assert json_pointer(["a/b", 0, "c~d"]) == "/a~1b/0/c~0d"


pytestmark = pytest.mark.integration


def test_unknown_paths_and_methods_are_problems(client: httpx.Client) -> None:
    assert expect(client.get("/api/v1/nothing"), 404).headers["content-type"] == "application/problem+json"
    assert expect(client.delete("/api/v1/submissions"), 405).headers["content-type"] == "application/problem+json"


def test_405_allows_the_methods_of_all_routes_of_the_path(client: httpx.Client) -> None:
    for path, methods in {
        "/api/v1/submissions": "GET, POST",
        "/api/v1/session": "DELETE, GET, POST",
        "/api/v1/users/someone": "PATCH",
        "/api/v1/labs/ca": "GET",
        "/r/7": "GET, HEAD",
        "/lab": "GET, HEAD",
    }.items():
        assert expect(client.options(path), 405).headers["allow"] == methods, path
