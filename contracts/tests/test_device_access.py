"""Which units take the series of every account."""

from __future__ import annotations

from typing import Any

import pytest

from wqlab_contracts.specs import DeviceType

TYPE: dict[str, Any] = {
    "name": "server",
    "summary": "s",
    "arch": "x86_64",
    "topology": {"sockets": 1, "l3_per_socket": 1, "cores_per_l3": 2, "threads_per_core": 1},
}
NETCONSOLE = "+6665@192.0.2.11/eth0,6665@192.0.2.1/"


@pytest.mark.parametrize(
    ("more", "unit", "anyone"),
    [
        pytest.param({}, {}, True, id="netboot"),
        pytest.param({}, {"own_system": {}}, False, id="dual boot"),
        pytest.param({}, {"netconsole": NETCONSOLE}, False, id="ssh-only"),
        pytest.param({"boot": {"rootfs": "/boot/wqlab/rootfs.cpio"}}, {}, False, id="image on a disk"),
        pytest.param({}, {"own_system": {}, "series_of": "anyone"}, True, id="the operator allows it"),
        pytest.param({}, {"series_of": "named"}, False, id="the operator forbids it"),
        pytest.param({"rehearsal": True}, {"own_system": {}}, True, id="rehearsal machine"),
        pytest.param({"emulation": {"memory_mib": 512}}, {}, True, id="emulated"),
    ],
)
def test_a_unit_that_starts_from_its_own_disk_takes_not_anyones_series(
    more: dict[str, Any], unit: dict[str, Any], anyone: bool
) -> None:
    device_type = DeviceType.model_validate({**TYPE, **more, "units": [{"name": "server-1", **unit}]})
    assert device_type.takes_anyone(device_type.units[0]) is anyone
