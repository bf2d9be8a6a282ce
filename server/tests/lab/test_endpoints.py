"""Endpoints of devices and device types."""

from __future__ import annotations

import httpx
import pytest

from wqlab_contracts.api.devices import DeviceTypeView, DeviceView
from wqlab_contracts.enums import Arm, DeviceHealth, Scope

from ..support.live_server import Live, expect
from ..support.scene import Scene

pytestmark = pytest.mark.integration
LOCKS = {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0}


@pytest.fixture
def run_id(scene: Scene) -> int:
    scene.devices()
    number = scene.submission()
    scene.builds(number)
    return scene.measured(number, LOCKS)


def test_devices_show_health_lease_and_type(client: httpx.Client, scene: Scene) -> None:
    scene.devices()
    run_id = scene.run_id(scene.submission())
    scene.lease(run_id, "tiny-2")
    devices = [DeviceView.model_validate(each) for each in expect(client.get("/api/v1/devices")).json()]
    assert [(each.name, each.lease.run_id if each.lease else None) for each in devices] == [
        ("tiny-1", None),
        ("tiny-2", run_id),
    ]
    kind = DeviceTypeView.model_validate(expect(client.get("/api/v1/device-types")).json()[0])
    assert (kind.free, kind.devices, kind.problems) == (1, ["tiny-1", "tiny-2"], [])
    assert kind.topology.cores_per_l3 == 2
    assert "did you mean tiny-1?" in expect(client.get("/api/v1/devices/tny-1"), 404).json()["detail"]
    assert client.get("/api/v1/devices", params={"device_type": "other"}).json() == []


def test_device_is_quarantined_with_a_reason_and_released(live: Live, scene: Scene) -> None:
    scene.devices()
    url = "/api/v1/devices/tiny-1"
    with live.client(Scope.SUBMIT) as client:
        assert client.post(f"{url}/quarantine", json={"reason": "noise"}).status_code == 403
    with live.client(Scope.MAINTAIN) as client:
        assert client.post(f"{url}/quarantine", json={"reason": ""}).status_code == 422
        odd = expect(client.post(f"{url}/quarantine", json={"reason": "fan\0noise"})).json()
        assert odd["health_reason"] == "fan\ufffdnoise (maintain)", "the database takes no NUL"
        out = DeviceView.model_validate(expect(client.post(f"{url}/quarantine", json={"reason": "fan noise"})).json())
        assert (out.health, out.health_reason) == (DeviceHealth.QUARANTINED, "fan noise (maintain)")
        assert client.get("/api/v1/device-types").json()[0]["free"] == 1
        back = DeviceView.model_validate(expect(client.post(f"{url}/release")).json())
        assert back.health is DeviceHealth.UNKNOWN
        assert expect(client.post(f"{url}/release")).json()["health"] == "unknown"
        assert client.post("/api/v1/devices/none/release").status_code == 404
