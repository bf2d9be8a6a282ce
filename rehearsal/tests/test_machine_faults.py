"""Faults that change how a rehearsal machine starts, and those of its network."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

import pytest

from wqlab_bench import qemu
from wqlab_rehearsal import faults, machine_faults, netboot, network_faults, prepare, thermal_zone
from wqlab_rehearsal.current_faults import CurrentFaults
from wqlab_rehearsal.machines import XEON

ROOT = Path(__file__).parents[2]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the Xeon's rehearsal machine, with the files that `make rehearse` writes."""
    monkeypatch.setattr(prepare.netboot, "write_files", lambda *_: None)  # compresses an image for a minute
    golden = qemu.Golden(tmp_path / "kernel", tmp_path / "rootfs.cpio", "KEY")
    folders = (tmp_path / "rehearsal", tmp_path / "state")
    settings = prepare.Settings(ROOT, *folders, {"x86_64": golden}, "tcg", "local", tmp_path / "cache")
    settings.folder.mkdir()
    types = prepare.write_data([XEON.name], settings)
    prepare.write_machine(XEON.name, types[XEON.name], settings)
    return settings.folder / XEON.name


def started(machine: Path, *names: str) -> str:
    """Return the script that starts the machine with these faults."""
    faults.write(machine, names)
    machine_faults.apply(machine)
    return (machine / "power-on").read_text()


@pytest.mark.parametrize(
    ("name", "there", "gone"),
    [
        ("disk-missing", "serial=SERIAL0003", "serial=SERIAL0002"),
        ("disk-renamed", "serial=REPLACED0001", "serial=SERIAL0002"),
        ("disk-read-only", "SERIAL0002.raw,readonly=on", "SERIAL0002.raw,format"),
        ("disk-full", "file=blkdebug:", "disk0,file=/"),
        ("clock-1970", "base=1970-01-01", ""),
        ("smt-off", "-smp 4,maxcpus=4,sockets=2,dies=1,cores=2,threads=1", "threads=2"),
        ("hot", "-acpitable sig=SSDT", ""),
        ("hot-at-first", "-acpitable sig=SSDT", ""),
        ("boots-disk", "serial=SYSTEM0001,bootindex=0", "52:54:00:08:38:01,bootindex=0"),
    ],
)
def test_a_fault_changes_the_start_and_leaves_no_trace(machine: Path, name: str, there: str, gone: str) -> None:
    healthy = (machine / "power-on").read_text()
    text = started(machine, name)
    assert there in text and (there not in healthy or name == "disk-missing")
    assert not gone or (gone in healthy and gone not in text)
    assert started(machine) == healthy


def test_every_fault_has_its_place() -> None:
    assert set(machine_faults._CHANGES) == set(faults.MACHINE_FAULTS)
    groups = (faults.LINK_FAULTS, faults.NETWORK_FAULTS, faults.EVENT_FAULTS, faults.MACHINE_FAULTS)
    assert sum(map(len, groups)) == len(faults.FAULTS), "no name is used twice"


# --- network ----------------------------------------------------------------------------------------------------------


def udp(source: int, target: int, payload: bytes, sender: str = "0.0.0.0") -> bytes:
    """Return an Ethernet frame with UDP over IPv4 between two ports, as far as the switch reads it."""
    header = (
        b"\xff" * 12 + b"\x08\x00" + b"\x45" + bytes(8) + b"\x11" + bytes(2) + IPv4Address(sender).packed + bytes(4)
    )
    return header + source.to_bytes(2, "big") + target.to_bytes(2, "big") + bytes(4) + payload


FIRMWARE_ASKS, SYSTEM_ASKS = udp(68, 67, b"PXEClient"), udp(68, 67, b"udhcp 1.35")
ARP = b"\xff" * 12 + b"\x08\x06" + bytes(28)
TFTP_BLOCK = udp(34567, 1234, b"\0\3\0\1" + bytes(512))


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[network_faults.BadNetwork, CurrentFaults]:
    monkeypatch.setattr(network_faults.time, "monotonic", lambda: clock[0])
    clock[0] = 1000.0
    current = CurrentFaults(faults.file_of(tmp_path))
    return network_faults.BadNetwork(current), current


clock = [1000.0]


def passes(network: network_faults.BadNetwork, frame: bytes, *, from_machine: bool) -> bool:
    return network.delay_s(frame, from_machine=from_machine) is not None


def test_a_late_server_answers_firmware_and_not_the_system(
    network: tuple[network_faults.BadNetwork, CurrentFaults],
) -> None:
    switch, current = network
    current.names = frozenset({"dhcp-late"})
    assert passes(switch, FIRMWARE_ASKS, from_machine=True)
    assert not passes(switch, SYSTEM_ASKS, from_machine=True)
    assert passes(switch, ARP, from_machine=True)
    clock[0] += 2
    assert not passes(switch, SYSTEM_ASKS, from_machine=True)
    for _ in range(22):
        clock[0] += 2
        last = passes(switch, SYSTEM_ASKS, from_machine=True)
    assert last, "45 s after the first request"


def test_a_port_that_waits_for_spanning_tree_passes_nothing(
    network: tuple[network_faults.BadNetwork, CurrentFaults],
) -> None:
    switch, current = network
    current.names = frozenset({"spanning-tree"})
    assert passes(switch, ARP, from_machine=False)
    assert not passes(switch, SYSTEM_ASKS, from_machine=True)
    assert not passes(switch, ARP, from_machine=False)
    clock[0] += network_faults.SPANNING_TREE_S
    assert passes(switch, ARP, from_machine=False)


def test_a_system_hears_the_second_server_first_and_firmware_the_right_one(
    network: tuple[network_faults.BadNetwork, CurrentFaults],
) -> None:
    switch, current = network
    current.names = frozenset({"dhcp-second"})
    offers = [udp(67, 68, b"", source) for source in (netboot.GATEWAY, network_faults.SECOND_SERVER)]
    assert passes(switch, FIRMWARE_ASKS, from_machine=True)
    assert [switch.delay_s(offer, from_machine=False) for offer in offers] == [0, 0]
    assert passes(switch, SYSTEM_ASKS, from_machine=True)
    assert [switch.delay_s(offer, from_machine=False) for offer in offers] == [network_faults.FIRST_SERVER_S, 0]


def test_tftp_is_slow_or_ends(network: tuple[network_faults.BadNetwork, CurrentFaults]) -> None:
    switch, current = network
    current.names = frozenset({"tftp-slow"})
    delays = [switch.delay_s(TFTP_BLOCK, from_machine=False) for _ in range(3)]
    assert delays == pytest.approx([network_faults.TFTP_BLOCK_S * n for n in (1, 2, 3)]), "blocks are sent in turn"
    current.names = frozenset({"tftp-cut"})
    passed = sum(passes(switch, TFTP_BLOCK, from_machine=False) for _ in range(network_faults.TFTP_BLOCKS + 10))
    assert passed == network_faults.TFTP_BLOCKS - 3, "three blocks have gone before"
    assert passes(switch, FIRMWARE_ASKS, from_machine=True)
    assert passes(switch, TFTP_BLOCK, from_machine=False), "the next boot begins anew"


def test_a_network_without_faults_passes_everything(
    network: tuple[network_faults.BadNetwork, CurrentFaults],
) -> None:
    switch, _ = network
    assert switch.delay_s(SYSTEM_ASKS, from_machine=True) == 0


# --- sensor -----------------------------------------------------------------------------------------------------------


def test_the_sensor_is_what_an_acpi_compiler_makes_of_its_source() -> None:
    """`iasl` makes these bytes, after the header, of the source in `thermal_zone` with 30 days for COOL_AFTER."""
    assert thermal_zone.table(30 * 24 * 3600).hex() == (
        "10355c5f53425f5b852d43505554141c5f544d5000a011955b330e008064f892170000a40bfe0da40b6e0c140a5f43525400a40b5c0f"
    )
