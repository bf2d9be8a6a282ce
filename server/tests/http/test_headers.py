"""Security headers of responses."""

from __future__ import annotations

import pytest

from wqlab_server.app import create_app
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory

from ..support.live_server import Live
from ..support.problem_app import request, run

pytestmark = pytest.mark.integration
URL = "/api/v1/session"
SUBMISSIONS = "/api/v1/submissions"


def test_responses_forbid_foreign_scripts_and_framing(live: Live) -> None:
    with live.browser("read") as client:
        for url in (URL, SUBMISSIONS, "/api/v1/plans", "/api/v1/nothing", "/healthz", "/r/7", "/docs"):
            headers = client.get(url).headers
            assert headers["x-content-type-options"] == "nosniff", url
            assert "frame-ancestors 'none'" in headers["content-security-policy"], url
            if url.startswith("/api/"):
                assert headers["cache-control"] == "no-store", url
                assert headers["content-security-policy"].startswith("default-src 'none'"), url


@pytest.mark.parametrize(("url", "expected"), [("https://lab.test", "max-age=31536000"), ("http://lab.test", None)])
def test_browsers_are_told_to_use_https_only_if_the_public_url_is_https(
    sessions: SessionFactory, settings: Settings, url: str, expected: str | None
) -> None:
    app = create_app(settings.model_copy(update={"public_url": url}), sessions)
    for path in ("/", "/healthz", "/api/v1/session", "/api/v1/nothing"):
        answer = run(request("GET", path, app=app))
        assert answer.headers.get("strict-transport-security") == expected, path
