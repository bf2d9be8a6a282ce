"""The rehearsal machines: which entry of docs/hardware each emulates, with what, and what it cannot show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from wqlab_contracts.specs import CpuArch


@dataclass(frozen=True)
class Card:
    """A network card."""

    model: str
    """QEMU's name of the card."""
    mac: str
    instead: str = ""
    """Card for a QEMU that lacks `model`."""
    negotiation_s: float = 0
    """Seconds without a link after each reset by a driver. Only the only card of a machine, an e1000e, can have it."""


@dataclass(frozen=True)
class Disk:
    """A disk."""

    bus: Literal["nvme", "sata", "sd"]
    serial: str
    size_mib: int = 4096

    @property
    def link(self) -> str:
        """Return the name in /dev/disk/by-id, which has QEMU's name of the model."""
        names = {
            "nvme": f"nvme-QEMU_NVMe_Ctrl_{self.serial}",
            "sata": f"ata-QEMU_HARDDISK_{self.serial}",
            # Name and serial number of QEMU's card cannot be chosen; `serial` only names its file.
            "sd": "mmc-QEMU__0xdeadbeef",
        }
        return names[self.bus]


@dataclass(frozen=True)
class RehearsalMachine:
    """One machine: an entry of docs/hardware, its emulation, and the values that replace those of the real one."""

    name: str
    device_type: str
    """File in docs/hardware/device-types, without `.yaml`."""
    exporter: str
    """File in docs/hardware/labgrid."""
    device: str
    """Name of the unit, and of its group in the exporter's file."""
    prefix: str
    """Beginning of the names of the device's addresses."""
    power: Literal["ipmi", "pdu", "redfish", "servo"]
    uart: int | None
    """Number of the serial port with the console: 0 is COM1. None: there is none, and the console is netconsole."""
    cards: tuple[Card, ...]
    disks: tuple[Disk, ...]
    """Disks that plans may overwrite."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Counts and settings of the real machine that QEMU cannot have: name in addresses.env -> value."""
    memory_mib: int = 3072
    cpu_model: str = "Skylake-Server"
    """QEMU's name of the model. Its models of AMD have an L3 cache for each core, whatever the topology."""
    arch: CpuArch = "x86_64"
    firmware_card: Card | None = None
    """Network card that only the firmware uses; Linux has no driver for it. None: the firmware uses the first card."""
    uefi: bool = True
    system_disk: Disk | None = None
    """Disk with the golden system as a boot entry. None: the machine starts from the network by its first card."""
    own_system: bool = False
    """True: a Debian on the system disk is the boot loader's default."""
    training_s: int = 0
    """Seconds between power on and the firmware's first instruction."""


CONDITIONS_OF_QEMU = "smt, irq_affinity"
"""Conditions that a rehearsal machine must satisfy. An emulated CPU has no clock that can be set, and no sensor."""

XEON = RehearsalMachine(
    name="xeon",
    device_type="xeon-8380-2s",
    exporter="xeon-8380.yaml",
    device="xeon-8380-1",
    prefix="XEON_8380_1",
    power="ipmi",
    uart=1,
    cards=(Card("e1000e", "52:54:00:08:38:01"), Card("igb", "52:54:00:08:38:02", instead="e1000e")),
    disks=(Disk("nvme", "SERIAL0002"), Disk("nvme", "SERIAL0003")),
    values={
        "XEON_8380_CORES_PER_L3": "2",
        # UEFI numbers CPUs as the emulator does; smt_last needs a change of the firmware's tables.
        "XEON_8380_NUMBERING": "contiguous",
        "XEON_8380_REQUIRED": CONDITIONS_OF_QEMU,
    },
    training_s=10,
)

RYZEN = RehearsalMachine(
    name="ryzen",
    device_type="ryzen-3900x-box",
    exporter="ryzen-box.yaml",
    device="ryzen-box-1",
    prefix="RYZEN_BOX_1",
    power="pdu",
    uart=0,
    # QEMU has no card that Linux drives by r8169; what is rehearsed of one is that its link comes back seconds later.
    cards=(Card("e1000e", "52:54:00:39:00:01", negotiation_s=4),),
    disks=(Disk("sata", "SERIAL0004"), Disk("nvme", "SERIAL0001")),
    values={
        "RYZEN_BOX_L3_PER_SOCKET": "2",
        "RYZEN_BOX_CORES_PER_L3": "2",
        "RYZEN_BOX_NUMBERING": "contiguous",
        "RYZEN_BOX_REQUIRED": CONDITIONS_OF_QEMU,
        # An emulator on a busy host starts more slowly than the machine.
        "RYZEN_BOX_GOLDEN_TIMEOUT_S": "900",
        "RYZEN_BOX_VARIANT_TIMEOUT_S": "240",
    },
)

SSH_ONLY = RehearsalMachine(
    name="ssh-only",
    device_type="ssh-only-server",
    exporter="ssh-only.yaml",
    device="ssh-only-1",
    prefix="SSH_ONLY_1",
    power="redfish",
    uart=None,
    cards=(Card("e1000e", "52:54:00:55:48:01"),),
    disks=(Disk("nvme", "SERIAL0006"),),
    system_disk=Disk("sata", "SERIAL0005"),
    values={
        "SSH_ONLY_L3_PER_SOCKET": "2",
        "SSH_ONLY_CORES_PER_L3": "2",
        "SSH_ONLY_NUMBERING": "contiguous",
        "SSH_ONLY_REQUIRED": CONDITIONS_OF_QEMU,
    },
)

DUAL_BOOT = replace(
    SSH_ONLY,
    name="dual-boot",
    device_type="dual-boot-server",
    exporter="dual-boot.yaml",
    device="dual-boot-1",
    prefix="DUAL_BOOT_1",
    cards=(Card("e1000e", "52:54:00:55:48:02"),),
    disks=(Disk("nvme", "SERIAL0008"),),
    system_disk=Disk("sata", "SERIAL0009"),
    own_system=True,
    values={name.replace("SSH_ONLY", "DUAL_BOOT"): value for name, value in SSH_ONLY.values.items()},
)

CHROMEBOOK = RehearsalMachine(
    name="chromebook",
    device_type="chromebook-mt8183",
    exporter="chromebooks.yaml",
    device="chromebook-mt8183-1",
    prefix="CHROMEBOOK_MT8183_1",
    power="servo",
    uart=0,
    arch="arm64",
    # A MAC address of Realtek: Linux names an adapter with a locally administered one usb0.
    cards=(Card("usb-net", "00:e0:4c:81:83:01"),),
    # U-Boot cannot use QEMU's USB network adapter.
    firmware_card=Card("e1000", "52:54:00:81:83:02"),
    disks=(Disk("sd", "SERIAL0007"),),
    values={
        # QEMU's machine has a PL011.
        "CHROMEBOOK_MT8183_CONSOLE_DEVICE": "ttyAMA0",
        "CHROMEBOOK_MT8183_REQUIRED": "",
        # Eight emulated CPUs on a host with two.
        "CHROMEBOOK_MT8183_GOLDEN_TIMEOUT_S": "900",
        "CHROMEBOOK_MT8183_VARIANT_TIMEOUT_S": "300",
    },
    cpu_model="cortex-a72",
    uefi=False,
)

MACHINES: Mapping[str, RehearsalMachine] = {
    machine.name: machine for machine in (XEON, RYZEN, SSH_ONLY, DUAL_BOOT, CHROMEBOOK)
}
