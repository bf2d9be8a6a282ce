"""A token with scope read changes nothing, whatever its account may do."""

from __future__ import annotations

import re

import pytest
from fastapi.routing import iter_route_contexts

from wqlab_contracts.enums import Scope, UserRole
from wqlab_server.http.auth import Principal, create_token, is_read_only
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.live_server import Live
from ..support.people import add_user

CALCULATES = {"/api/v1/quotes", "/api/v1/touches", "/api/v1/series/decode", "/api/v1/series/inspect"}
"""Requests other than GET that store nothing and start nothing."""
STARTS_A_JOB = (
    "watches/wq/preview", "git/branches?url=https://git.example/x", "archives/thread?message_id=a@b",
    "git/branches/inspection?url=https://git.example/x&ref=main",
)  # fmt: skip
"""GET requests that start a read by a worker."""
NEEDS_NO_TOKEN = {
    "/api/v1/forges/{name}/events", "/api/v1/labs/join", "/api/v1/mail-address/confirm/{token}",
    "/api/v1/unsubscribe/{token}", "/api/v1/session",
}  # fmt: skip
"""Requests that carry their own proof: a signature, an invitation, a link's secret, a password, a cookie."""


@pytest.mark.parametrize(
    ("scopes", "role", "csrf", "read_only"),
    [
        ({Scope.READ}, UserRole.ADMIN, None, True),
        ({Scope.READ}, UserRole.SUBMITTER, None, True),
        ({Scope.READ}, UserRole.VIEWER, None, True),
        ({Scope.READ}, UserRole.ADMIN, "a browser", False),
        ({Scope.READ}, UserRole.VIEWER, "a browser", False),
        ({Scope.SUBMIT}, UserRole.ADMIN, None, False),
        ({Scope.READ, Scope.MAINTAIN}, UserRole.MAINTAINER, None, False),
        ({Scope.WORKER}, None, None, False),
    ],
)
def test_a_token_with_scope_read_only_reads(
    scopes: set[Scope], role: UserRole | None, csrf: str | None, read_only: bool
) -> None:
    assert is_read_only(Principal("ada", frozenset(scopes), role=role, csrf=csrf)) is read_only


@pytest.mark.integration
@pytest.mark.parametrize("role", [UserRole.ADMIN, UserRole.VIEWER])
def test_every_request_that_changes_something_refuses_it(live: Live, sessions: SessionFactory, role: UserRole) -> None:
    with transaction(sessions) as session:
        _, secret = create_token(session, "stolen", [Scope.READ], user=add_user(session, "ada", role))
    tried = set()
    with live.client(None) as thief:
        thief.headers["Authorization"] = f"Bearer {secret}"
        for route in iter_route_contexts(live.app.routes):
            for method in (route.methods or set()) - {"GET", "HEAD", "OPTIONS"}:
                if route.path in CALCULATES | NEEDS_NO_TOKEN:
                    continue
                answer = thief.request(method, re.sub(r"\{[^}]*\}", "1", route.path), json={})
                assert answer.status_code == 403, f"{method} {route.path}: {answer.text}"
                tried.add(route.path)
        for path in STARTS_A_JOB:
            answer = thief.get(f"/api/v1/{path}")
            assert answer.status_code == 403, f"{path}: {answer.text}"
    assert len(tried) > 40
