"""Liveness and readiness."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_contracts.enums import Scope

from ..support.live_server import Live, expect
from ..support.scene import TINY

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("path", ["/metrics", "/readyz"])
def test_metrics_and_readiness_from_another_machine_need_a_token(live: Live, path: str) -> None:
    elsewhere = {"X-Forwarded-For": "203.0.113.5"}
    live.allow_public_reading()
    with live.client(None) as visitor:
        assert visitor.get(path).status_code != 401
        expect(visitor.get(path, headers=elsewhere), 401)
        assert expect(visitor.get("/healthz", headers=elsewhere)).json() == {"status": "ok"}
    with live.client(Scope.READ) as prometheus:
        assert prometheus.get(path, headers=elsewhere).status_code in {200, 503}


def test_readiness_names_failed_checks(live: Live, scene_data_dir: Path) -> None:
    with live.client(None) as client:
        assert expect(client.get("/healthz")).json() == {"status": "ok"}
        checks = expect(client.get("/readyz"), 503).json()["checks"]
        assert [name for name, check in checks.items() if not check["ok"]] == ["broker"]
        (scene_data_dir / "device-types" / "new.yaml").write_text(TINY.replace("summary", "sumary"))
        live.app.state.data._checked_at = float("-inf")
        folder = client.get("/readyz").json()["checks"]["data_folder"]
        assert folder["ok"]
        assert any("device-types/new.yaml:2" in problem for problem in folder["problems"])
    with live.client() as client:
        types = client.get("/api/v1/device-types").json()
        assert [each["name"] for each in types] == ["tiny"]
        assert types[0]["problems"] == folder["problems"]
