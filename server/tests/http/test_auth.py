"""Authorization by token, by cookie and CSRF token, and of visitors."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from sqlalchemy import func, select

from wqlab_contracts.api.accounts import SessionView
from wqlab_contracts.api.base import Problem
from wqlab_contracts.enums import Scope
from wqlab_server.models import Submission
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.live_server import Live, expect
from ..support.people import PASSWORD
from ..support.scene import REQUEST, Scene

pytestmark = pytest.mark.integration
URL = "/api/v1/session"
SUBMISSIONS = "/api/v1/submissions"


def who(client: httpx.Client) -> SessionView:
    return SessionView.model_validate_json(expect(client.get(URL)).content)


def problem(answer: httpx.Response) -> Problem:
    assert answer.headers["content-type"] == "application/problem+json"
    return Problem.model_validate_json(answer.content)


@pytest.mark.parametrize("given", [None, "", "x", "another session's", "é"])
def test_change_by_cookie_needs_the_sessions_csrf_token(
    live: Live, sessions: SessionFactory, given: str | None
) -> None:
    with live.browser("admin") as client, live.browser("admin") as other:
        own = client.headers.pop("X-CSRF-Token")
        headers: dict[str, str | bytes] = {}
        if given is not None:
            token = other.headers["X-CSRF-Token"] if given == "another session's" else given
            headers["X-CSRF-Token"] = token.encode("latin-1")
        for method, url, body in (
            ("POST", SUBMISSIONS, REQUEST),
            ("POST", "/api/v1/tokens", {"name": "mine", "scopes": ["admin"]}),
            ("POST", "/api/v1/users", {"name": "mallory", "role": "admin"}),
            ("PUT", f"{URL}/password", {"old_password": PASSWORD, "new_password": "known to mallory"}),
            ("DELETE", URL, None),
        ):
            refused: Any = problem(expect(client.request(method, url, json=body, headers=headers), 403))
            assert refused.type == "urn:wqlab:problem:csrf", (method, url)
        assert expect(client.get(SUBMISSIONS)).json()["total"] == 0
        assert who(client).user is not None
        assert (
            expect(client.post(SUBMISSIONS, json=REQUEST, headers={"X-CSRF-Token": own}), 201).json()["owner"]
            == "admin"
        )
    with transaction(sessions) as session:
        assert session.scalar(select(func.count(Submission.id))) == 1


def test_token_needs_no_csrf_token_and_overrides_a_cookie(live: Live) -> None:
    with live.browser("admin") as client:
        del client.headers["X-CSRF-Token"]
        client.headers["Authorization"] = f"Bearer {live.secrets[Scope.SUBMIT]}"
        assert expect(client.post(SUBMISSIONS, json=REQUEST), 201).json()["owner"] == "submit"
        expect(client.get("/api/v1/users"), 403)
        client.headers["Authorization"] = "Bearer wql_no_such_token"
        expect(client.get(SUBMISSIONS), 401)
        client.headers["Authorization"] = "Basic YWRtaW46YWRtaW4="
        expect(client.post(SUBMISSIONS, json=REQUEST), 403)


def test_reading_needs_a_token(live: Live, scene: Scene) -> None:
    scene.devices()
    number = scene.submission()
    run_id = scene.run_id(number)
    with live.client(None) as nobody, live.client(Scope.READ) as reader:
        for path in (
            f"/submissions/{number}/steps",
            f"/submissions/{number}/versions",
            f"/runs/{run_id}/values?scenario=fsync&metric=locks",
            "/queue",
            "/devices/tiny-1/history",
        ):
            assert nobody.get(f"/api/v1{path}").status_code == 401
            assert reader.get(f"/api/v1{path}").status_code == 200, path
