"""Exporter files written by `wqlab device add` are read by labgrid; the exporter's environment has the addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from labgrid import Target, target_factory
from labgrid.remote.config import ResourceConfig

from wqlab_client.new_devices import render
from wqlab_contracts.new_devices.description import NewDevice
from wqlab_contracts.new_devices.power_commands import addresses

DESCRIBED: dict[str, Any] = {
    "name": "box-1",
    "device_type": "box",
    "console": {"host": "console-1", "port": 7001},
    "ssh": {"host": "192.0.2.11"},
}
IPMI = {"kind": "ipmi", "host": "bmc-1", "user": "lab", "password_file": "/etc/wqlab/ipmi"}
APC = {"kind": "pdu", "model": "apc", "host": "pdu-1", "port": 1161, "outlet": 3}
SHELLY = {"kind": "pdu", "model": "shelly_gen2", "host": "plug-1", "outlet": 0}


@pytest.mark.parametrize(
    ("power", "port"),
    [
        (IPMI, None),
        (APC, {"model": "apc", "host": "pdu-1:1161", "index": 3}),
        (SHELLY, {"model": "shelly_gen2", "host": "http://plug-1", "index": 0}),
    ],
)
def test_labgrid_reads_the_file(
    power: dict[str, Any], port: dict[str, Any] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = NewDevice.model_validate({**DESCRIBED, "power": power})
    for name, value in addresses(device).items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "box-1.yaml"
    file.write_text(render.exporter_text(device))
    (group,) = ResourceConfig(str(file), {"env": addresses(device)}).data.items()
    assert group[0] == "box-1"
    resources = group[1]
    assert resources["NetworkSerialPort"] == {"host": "console-1", "port": 7001, "protocol": "raw", "speed": 115200}
    assert resources["NetworkService"] == {"address": "192.0.2.11", "username": "root", "port": 22}
    assert resources.get("NetworkPowerPort") == port
    target = Target("box-1")
    for kind, arguments in resources.items():
        target_factory.make_resource(target, kind, kind, arguments)
