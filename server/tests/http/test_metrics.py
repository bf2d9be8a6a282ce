"""Prometheus metrics."""

from __future__ import annotations

import httpx
import pytest

from wqlab_contracts.enums import DeviceHealth

from ..support.live_server import expect
from ..support.scene import Scene

pytestmark = pytest.mark.integration


def test_metrics_count_jobs_devices_and_requests(client: httpx.Client, scene: Scene) -> None:
    scene.devices(DeviceHealth.SUSPECT)
    number = scene.submission()
    client.get(f"/api/v1/submissions/{number}")
    text = expect(client.get("/metrics")).text
    assert 'wqlab_jobs{kind="apply",state="queued"} 1.0' in text
    assert 'wqlab_submissions{state="applying"} 1.0' in text
    assert 'wqlab_devices{device_type="tiny",health="suspect"} 2.0' in text
    assert "wqlab_database_up 1.0" in text
    assert 'wqlab_http_request_seconds_count{operation="get_submission",status="200"} 1.0' in text
