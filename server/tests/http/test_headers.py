"""Security headers of responses."""

from __future__ import annotations

import pytest

from ..support.live_server import Live

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
