"""Described machines become device types, exporter files and addresses that the loaders accept, or are refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from wqlab_client.new_devices import files
from wqlab_contracts.addresses_file import read_addresses
from wqlab_contracts.loading import load_data
from wqlab_contracts.new_devices.description import NewDevice
from wqlab_contracts.specs import OwnSystem, Topology

ROOT = Path(__file__).parents[3]
XEON = {"sockets": 2, "l3_per_socket": 1, "cores_per_l3": 40, "threads_per_core": 2, "numbering": "smt_last"}
RYZEN = {"sockets": 1, "l3_per_socket": 4, "cores_per_l3": 3, "threads_per_core": 2, "numbering": "smt_last"}
NETCONSOLE = "+6665@192.0.2.11/eth0,6666@192.0.2.1/"
PASSWORD_FILE = {"user": "lab", "password_file": "/etc/wqlab/bmc"}


def server(number: int, **other: Any) -> NewDevice:
    """Return the description of a server with IPMI; `other` replaces fields."""
    described = {
        "name": f"server-{number}",
        "device_type": "xeon-a",
        "topology": XEON,
        "power": {"kind": "ipmi", "host": f"bmc-{number}", **PASSWORD_FILE},
        "console": {"host": "console-1", "port": 7000 + number},
        "ssh": {"host": f"server-{number}"},
        "scratch": [f"nvme-A_{number}"],
    }
    return NewDevice.model_validate(described | other)


def box(number: int) -> NewDevice:
    power = {"kind": "pdu", "model": "apc", "host": f"pdu-{number}", "outlet": 3}
    console = {"host": "console-2", "port": 8000 + number}
    other = {"console": console, "ssh": {"host": f"box-{number}"}}
    return server(number, name=f"box-{number}", device_type="ryzen-a", topology=RYZEN, power=power, **other)


def quiet(number: int, power: dict[str, Any], **other: Any) -> NewDevice:
    """Return the description of a server with Redfish and netconsole."""
    topology = {"sockets": 1, "l3_per_socket": 4, "cores_per_l3": 4, "threads_per_core": 1}
    power = {"kind": "redfish", **PASSWORD_FILE, **power}
    described = {"name": f"quiet-{number}", "device_type": "quiet", "topology": topology, "netconsole": NETCONSOLE}
    return server(number, **described, power=power, **other)


def book(number: int) -> NewDevice:
    return server(
        number,
        name=f"book-{number}",
        device_type="book",
        arch="arm64",
        topology={"sockets": 1, "l3_per_socket": 1, "cores_per_l3": 8, "threads_per_core": 1},
        power={"kind": "debug_cable", "port": 9997},
        console={"host": "console-1", "port": 7000 + number, "protocol": "rfc2217"},
        boot={"console_device": "ttyMSM0"},
    )


@pytest.fixture
def folders(tmp_path: Path) -> files.Folders:
    """A lab's folders, with the device types of this repository."""
    for name in ("kernels", "testplans", "intake"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "device-types", tmp_path / "device-types")
    return files.Folders(tmp_path, tmp_path / "exporters")


def add(folders: files.Folders, *devices: NewDevice) -> None:
    for device in devices:
        files.write(files.plan(device, folders))


def refusals(folders: files.Folders, device: NewDevice, *, replace: bool = False) -> list[str]:
    with pytest.raises(files.DeviceRefused) as caught:
        files.plan(device, folders, replace=replace)
    return caught.value.reasons


def test_machines_are_added_one_after_another_and_again_change_nothing(folders: files.Folders) -> None:
    assert len(files.write(files.plan(server(1), folders))) == 3
    add(folders, server(2, topology=None), box(1))
    loaded = load_data(folders.data).device_types
    assert [unit.name for unit in loaded["xeon-a"].units] == ["server-1", "server-2"]
    unit = loaded["xeon-a"].units[1]
    assert unit.scratch == ["/dev/disk/by-id/nvme-A_2"]
    assert unit.power is not None
    assert unit.power.turn_on == "ipmitool -I lanplus -H bmc-2 -p 623 -C 17 -U lab -f /etc/wqlab/bmc chassis power on"
    assert '$power status | grep -q "is off" || $power off' in unit.power.turn_off
    assert loaded["xeon-a"].topology == Topology.model_validate(XEON)
    assert loaded["ryzen-a"].units[0].power is None
    assert loaded["ryzen-a"].topology.cpus == 24
    assert loaded["ryzen-a"].tested is False
    for device in (server(1), server(2), box(1)):
        assert files.write(files.plan(device, folders)) == []


def test_what_a_machine_has_unlike_its_type_is_named(folders: files.Folders) -> None:
    add(folders, server(1))
    other = server(2, topology=XEON | {"cores_per_l3": 20}, boot={"golden_timeout_s": 900})
    topology, timeout = refusals(folders, other)
    assert "server-2: topology {" in topology and "choose another device type" in topology
    assert timeout.startswith("server-2: golden_timeout_s 900, unlike device-types/xeon-a.yaml")


def test_other_values_are_replaced_only_when_told(folders: files.Folders) -> None:
    add(folders, server(1), server(2))
    power = {"kind": "ipmi", "host": "bmc-7", **PASSWORD_FILE}
    moved = server(1, power=power, console={"host": "console-1", "port": 7107})
    assert "SERVER_1_CONSOLE_PORT=7001, SERVER_1_BMC=bmc-1; choose another name" in refusals(folders, moved)[0]
    files.write(files.plan(moved, folders, replace=True))
    known, problems = read_addresses(folders.device_types)
    assert not problems
    assert (known["SERVER_1_BMC"], known["SERVER_1_CONSOLE_PORT"]) == ("bmc-7", "7107")
    assert known["SERVER_2_BMC"] == "bmc-2"


def test_a_file_that_a_person_wrote_is_left_alone(folders: files.Folders) -> None:
    (said,) = refusals(folders, server(1, device_type="tiny"))
    assert "device-types/tiny.yaml was written or edited by a person" in said
    assert "  - name: server-1" in said, "it shows what to add"
    add(folders, server(1))
    path = folders.device_types / "xeon-a.yaml"
    path.write_text(path.read_text().replace("tested: false\n", "tested: false  # not yet\n"))
    assert "edited by a person" in refusals(folders, server(2))[0]


def test_a_device_type_that_is_not_utf_8_is_named(folders: files.Folders) -> None:
    (folders.device_types / "xeon-a.yaml").write_bytes("summary: gro\u00df\n".encode("latin-1"))
    assert refusals(folders, server(1))[-1].endswith("device-types/xeon-a.yaml is not UTF-8: save it as UTF-8")


def test_what_the_loaders_refuse_is_not_written(folders: files.Folders) -> None:
    (folders.device_types / "broken.yaml").write_text("summary: no more\n")
    before = sorted(folders.data.rglob("*"))
    assert all("device-types/broken.yaml" in reason for reason in refusals(folders, server(1)))
    assert sorted(folders.data.rglob("*")) == before


def test_a_unit_of_another_type_is_refused(folders: files.Folders) -> None:
    found = refusals(folders, server(1, name="tiny-1"), replace=True)
    advice = "choose another name, or remove it from device-types/tiny.yaml first"
    assert found == [f"tiny-1 is already a unit of tiny: {advice}"]


HAND_WRITTEN = """\
name: mine
summary: described by a person
recipe: measure-hardware
topology: {sockets: 1, l3_per_socket: 1, cores_per_l3: 2, threads_per_core: 1}
units:
  - name: rack-1
    lab: local
    power: {turn_on: "ipmi -H ${RACK_1_BMC:-10.0.0.1} on", turn_off: "ipmi -H ${RACK_1_BMC:-10.0.0.1} off"}
"""


@pytest.mark.parametrize("replace", [False, True])
def test_addresses_of_a_machine_that_a_person_described_stay(folders: files.Folders, replace: bool) -> None:
    """A name that makes the same names in addresses.env would send power commands to another machine."""
    (folders.device_types / "mine.yaml").write_text(HAND_WRITTEN)
    (found,) = refusals(folders, server(1, name="rack_1"), replace=replace)
    assert found == "RACK_1_BMC in addresses.env is that of rack-1 (device-types/mine.yaml): rename rack_1"


def test_a_name_that_differs_by_its_marks_only_is_refused(folders: files.Folders) -> None:
    add(folders, server(1))
    found = refusals(folders, server(2, name="server_1"), replace=True)
    assert "in addresses.env is that of server-1 (device-types/xeon-a.yaml): rename server_1" in found[0]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"console": {"host": "console-1", "port": 7001}}, "console of SERVER_1"),
        ({"ssh": {"host": "SERVER-1"}}, "SSH address of SERVER_1"),
        ({"power": {"kind": "ipmi", "host": "BMC-1", **PASSWORD_FILE}}, "power switch of SERVER_1"),
    ],
)
def test_a_place_of_another_machine_is_refused(folders: files.Folders, fields: dict[str, Any], said: str) -> None:
    add(folders, server(1))
    (found,) = refusals(folders, server(2, **fields))
    assert found == f"server-2 has the {said} in device-types/addresses.env: each machine needs its own"


def test_the_loopback_of_another_labs_host_is_another_address(folders: files.Folders) -> None:
    console = {"host": "127.0.0.1", "port": 7001}
    add(folders, server(1, lab="one", console=console, device_type="type-1"))
    assert files.plan(server(2, lab="two", console=console, device_type="type-2"), folders)
    (found,) = refusals(folders, server(2, lab="one", console=console, device_type="type-2"))
    assert "server-2 has the console of SERVER_1" in found


def test_bmcs_behind_one_gateway_differ_by_their_ports(folders: files.Folders) -> None:
    add(folders, quiet(1, {"host": "gateway", "port": 8443}))
    assert files.plan(quiet(2, {"host": "gateway", "port": 8444}), folders)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (quiet(1, {"host": "bmc-2"}), server(2)),
        (book(1), book(2)),
    ],
)  # fmt: skip
def test_two_machines_at_one_switch_are_refused(folders: files.Folders, first: NewDevice, second: NewDevice) -> None:
    """IPMI and Redfish of one BMC at their usual ports are one switch; so is a debug cable."""
    add(folders, first)
    (found,) = refusals(folders, second)
    assert f"{second.name} has the power switch of {first.prefix}" in found


def test_redfish_netconsole_and_debug_cable(folders: files.Folders) -> None:
    power = {"host": "bmc-1", "port": 8443, "certificate": "/etc/wqlab/bmc.pem", "system": "blade.3"}
    add(folders, quiet(1, power), quiet(2, {"host": "bmc-2"}, choose_golden="grub-reboot wqlab"), book(3))
    loaded = load_data(folders.data).device_types
    first, second = loaded["quiet"].units
    assert first.power is not None and second.power is not None
    assert first.power.turn_on == (
        "wqlab-redfish --url https://bmc-1:8443 --user lab --password-file /etc/wqlab/bmc --certificate"
        " /etc/wqlab/bmc.pem --system blade.3 on"
    )
    assert second.power.turn_off == "wqlab-redfish --url https://bmc-2 --user lab --password-file /etc/wqlab/bmc off"
    assert first.netconsole == NETCONSOLE
    assert first.own_system is None
    assert second.own_system == OwnSystem(choose_golden="grub-reboot wqlab", timeout_s=300)
    assert (loaded["quiet"].boot.crash_kernel_mib, loaded["book"].boot.crash_kernel_mib) == (256, None)
    (unit,) = loaded["book"].units
    assert unit.power is not None
    assert unit.power.turn_off == "dut-control --port 9997 power_state:off"
    assert (unit.netconsole, loaded["book"].arch) == (None, "arm64")
    exporters = {name: (folders.exporters / f"{name}.yaml").read_text() for name in ("book-3", "quiet-1")}
    assert "NetworkPowerPort" not in exporters["book-3"]
    assert "protocol: rfc2217" in exporters["book-3"] and "protocol: raw" in exporters["quiet-1"]


def test_a_rehearsal_machine_gives_no_evidence_of_speed(folders: files.Folders) -> None:
    add(folders, server(1, rehearsal=True))
    assert load_data(folders.data).device_types["xeon-a"].rehearsal is True
