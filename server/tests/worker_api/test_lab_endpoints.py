"""Endpoints for lab workers: power switches and capacity."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import JobKind
from wqlab_server.storage.live_data import LiveData

from ..support.lab import LabUnderTest

pytestmark = pytest.mark.integration


def test_lab_gets_how_its_devices_are_switched_off(lab: LabUnderTest, data_dir: Path) -> None:
    path = data_dir / "device-types/single.yaml"
    commands = {"turn_on": "ipmitool power on", "turn_off": "ipmitool power off"}
    units = [
        {"name": name, "lab": where, "power": commands} for name, where in (("single-1", "local"), ("far-1", "far"))
    ]
    units.append({"name": "desk-1", "lab": "local", "own_system": {"choose_golden": "grub-reboot wqlab"}})
    path.write_text(re.sub("units: .*", f"units: {json.dumps(units)}", path.read_text()))
    lab.app.state.data = LiveData(data_dir)
    assert lab.worker.request("GET", "labs/local/power").json() == {
        "power": {"single-1": commands},
        "own_systems": ["desk-1"],
    }


def test_a_removed_device_keeps_the_power_of_its_own_system(lab: LabUnderTest, data_dir: Path) -> None:
    """Its session may have died before its description was removed."""
    path = data_dir / "device-types/single.yaml"
    described = path.read_text()
    path.write_text(described.replace("{name: single-1}", "{name: single-1, own_system: {}}"))
    lab.app.state.data = LiveData(data_dir)
    lab.tick()
    path.write_text(described.replace("{name: single-1}", "{name: other-1}"))
    lab.app.state.data = LiveData(data_dir)
    lab.tick()
    assert lab.worker.request("GET", "labs/local/power").json()["own_systems"] == ["single-1"]


def test_published_capacity_limits_devices_in_use(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    lab.worker.post("labs/local/capacity", {"capacity": 1}, 204)
    first, second = lab.submit("locks@device"), lab.submit("locks@single")
    lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
    assert [lab.runs(i)[0].device_name is not None for i in (first, second)].count(True) == 1
    lab.worker.post("labs/local/capacity", {"capacity": 2}, 204)
    lab.tick()
    assert all(lab.runs(i)[0].device_name is not None for i in (first, second))


@pytest.mark.parametrize("url", ["http://[", "http://a:port/", "https://user@[::1/", "http://?x"])
def test_address_that_is_not_a_url_is_refused(lab: LabUnderTest, url: str) -> None:
    """The Lab page links to it."""
    refused = lab.worker.post("labs/local/capacity", {"capacity": 1, "pool": {"url": url}}, 422)
    assert "is not the URL of a LAVA server" in refused.text
    lab.worker.post("labs/local/capacity", {"capacity": 1, "pool": {"url": "https://[::1]:8000/lava"}}, 204)


def test_published_state_is_limited(lab: LabUnderTest) -> None:
    device = {"device_type": "qemu", "state": "Idle", "health": "Good" * 100}
    pool = {"url": "https://lava.example.org", "devices": {f"qemu-{number}": device for number in range(3000)}}
    lab.worker.post("labs/local/capacity", {"capacity": 1, "pool": pool}, 422)
    refused = {f"type-{number}": "no" for number in range(1001)}
    lab.worker.post("labs/local/capacity", {"capacity": 1, "refused": refused}, 422)
