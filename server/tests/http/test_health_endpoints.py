"""Liveness and readiness."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..support.live_server import Live, expect
from ..support.scene import TINY

pytestmark = pytest.mark.integration


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
