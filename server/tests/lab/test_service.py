"""The device pool: changes of the data folder, refused device types, and devices out of service."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import DeviceHealth
from wqlab_server.lab import service
from wqlab_server.models import Device, HealthChange

from ..support.lab import LabUnderTest

pytestmark = pytest.mark.integration


def test_refused_device_type_is_quarantined_until_it_is_accepted(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    reason = "this lab has no golden system for arm64; `make arm64` makes one"

    def publish(refused: dict[str, str] | None) -> dict[str, tuple[DeviceHealth, str]]:
        lab.worker.post("labs/local/capacity", {"capacity": 2, "refused": refused}, 204)
        with lab.transaction() as session:
            return {device.name: (device.health, device.health_reason) for device in session.scalars(select(Device))}

    before = publish(None)
    refused = publish({"single": reason})
    assert refused["single-1"] == (DeviceHealth.QUARANTINED, f"{reason} (lab local)")
    assert {name for name in before if refused[name] != before[name]} == {"single-1"}
    assert publish({"single": reason}) == refused
    assert publish(None) == refused, "a worker that reports nothing changes nothing"
    assert publish({})["single-1"] == (DeviceHealth.UNKNOWN, ""), "checked again before it is used"

    # A device that a maintainer quarantined stays quarantined, whatever the worker reports.
    lab.post("devices/single-1/quarantine", {"reason": "smells of smoke"})
    smoke = (DeviceHealth.QUARANTINED, "smells of smoke (dev)")
    assert publish({"single": reason})["single-1"] == smoke
    assert publish({})["single-1"] == smoke


def test_removed_device_is_retired_and_a_changed_one_is_unknown(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    data = lab.data
    single = data.device_types["single"]
    changed = single.model_copy(update={"units": [single.units[0].model_copy(update={"lab": "far"})]})
    types = {name: each for name, each in data.device_types.items() if name != "device"} | {"single": changed}
    with lab.transaction() as session:
        changes = service.pool_changes(session, data)
        assert changes == []
        changes = service.pool_changes(session, replace(data, device_types=types))
        assert [(change.name, change.facts is None) for change in changes] == [
            ("single-1", False),
            ("device-1", True),
            ("device-2", True),
        ]
        for change in changes:
            service.change_pool(session, change)
    assert (lab.device("single-1").lab, lab.device("single-1").health) == ("far", DeviceHealth.UNKNOWN)
    assert lab.device("device-1").retired_at is not None


def test_health_change_is_recorded_with_its_author(lab: LabUnderTest) -> None:
    with lab.transaction() as session:
        service.quarantine(session, "single-1", "smoke", "dev")
        service.quarantine(session, "single-1", "smoke", "dev")
        service.release(session, "single-1", "ann")
    with lab.transaction() as session:
        changes = session.scalars(select(HealthChange).order_by(HealthChange.id)).all()
        assert [(change.health, change.by) for change in changes] == [
            (DeviceHealth.QUARANTINED, "dev"),
            (DeviceHealth.UNKNOWN, "ann"),
        ]


def test_type_is_out_of_service_when_every_device_is_quarantined(lab: LabUnderTest) -> None:
    with lab.transaction() as session:
        service.quarantine(session, "device-1", "smoke", "dev")
        assert service.out_of_service_reason(session, "device") is None
        service.quarantine(session, "device-2", "fan", "dev")
        reason = service.out_of_service_reason(session, "device")
        assert service.out_of_service_reason(session, "unknown-type") is None, "a new type has no rows yet"
    assert reason == "every device of device is quarantined (device-1: smoke (dev); device-2: fan (dev))"
