"""Write the QEMU command line of a rehearsal machine, and the script that starts it."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Sequence
from pathlib import Path

from wqlab_bench import confinement, qemu, qemu_program, topology
from wqlab_contracts.bench_addresses import Accelerator
from wqlab_contracts.specs import DeviceType, Topology
from wqlab_host import tool

from . import link, u_boot
from .machines import Card, Disk, RehearsalMachine


class QemuError(Exception):
    """QEMU does not answer; the message has its output."""


USB = "usb-net"
"""QEMU's USB network adapter, which has no place in the boot order."""
UEFI_FIRMWARE = Path("/usr/share/OVMF/OVMF_CODE_4M.fd")


def command(
    machine: RehearsalMachine,
    device_type: DeviceType,
    folder: Path,
    accelerator: Accelerator,
    console: Sequence[str],
) -> list[str]:
    """Return the command line. `console` has the options of serial port and BMC; `folder` has disks and sockets.

    Raises topology.TopologyError.
    """
    layout = device_type.topology
    control = f"unix:{monitor(folder)},server=on,wait=off"
    guest = [
        *board(machine, layout), *confinement.SECCOMP, *qemu.accelerator_arguments(accelerator), *console,
        "-qmp", control, *(["-device", "qemu-xhci"] if any(card.model == USB for card in machine.cards) else []),
    ]  # fmt: skip
    for number, card in enumerate(cards(machine)):
        # A real machine starts from one card only, or from its disk.
        boot = ",bootindex=0" if number == 0 and machine.system_disk is None else ",romfile="
        guest += ["-netdev", f"stream,id=net{number},server=off,addr.type=unix,addr.path={socket(folder, number)}"]
        guest += ["-device", f"{_model(card)},netdev=net{number},mac={card.mac}{boot if card.model != USB else ''}"]
        guest += link.qemu_arguments(folder) if card.negotiation_s else []
    for number, disk in enumerate(disks(machine)):
        file = f"file={disk_file(folder, disk)},format=raw,cache=unsafe,discard=unmap"
        guest += ["-drive", f"if=none,id=disk{number},{file}"]
        if disk.bus == "sd":
            guest += ["-device", "sdhci-pci", "-device", f"sd-card,drive=disk{number}"]
            continue
        model = "nvme" if disk.bus == "nvme" else f"ide-hd,bus=ide.{number}"
        start = ",bootindex=0" if disk is machine.system_disk else ""
        guest += ["-device", f"{model},drive=disk{number},serial={disk.serial}{start}"]
    unpacked = qemu_program.tree(machine.arch)
    visible = [unpacked] if unpacked else []
    return ["nice", "-n", "5", *confinement.confine(guest, visible, writable=[folder])]


def board(machine: RehearsalMachine, layout: Topology) -> list[str]:
    """Return the beginning of the command line: the machine, its CPUs, its memory and its firmware.

    QEMU's arm64 machine has other devices with firmware than without. Raises topology.TopologyError.
    """
    kind = "q35,smm=off" if machine.arch == "x86_64" else qemu.MACHINE[machine.arch]
    return [
        *qemu_program.words(machine.arch), "-nodefaults", "-no-user-config", "-display", "none", "-machine", kind,
        "-cpu", topology.cpu(machine.cpu_model, layout, machine.arch),
        *topology.arguments(layout, machine.memory_mib, machine.arch), *_firmware(machine),
    ]  # fmt: skip


def _firmware(machine: RehearsalMachine) -> list[str]:
    if machine.arch == "arm64":
        return ["-bios", str(u_boot.FIRMWARE)]
    return ["-drive", f"if=pflash,format=raw,readonly=on,file={UEFI_FIRMWARE}"] if machine.uefi else []


def cards(machine: RehearsalMachine) -> tuple[Card, ...]:
    """Return all network cards in the order of their sockets."""
    return machine.cards if machine.firmware_card is None else (*machine.cards, machine.firmware_card)


def _model(card: Card) -> str:
    """Return the card's model, or its replacement if this QEMU lacks it: igb is new in QEMU 8.0."""
    return card.model if not card.instead or _has_device(card.model) else card.instead


@functools.cache
def _has_device(model: str) -> bool:
    # The list of all devices would load every module, also those that another version has installed; QEMU then aborts.
    options = tool.output([*qemu_program.words("x86_64"), "-device", f"{model},help"], QemuError)
    return options.startswith(f"{model} options:")


def socket(folder: Path, card: int) -> Path:
    """Return the socket into which a card is plugged."""
    return folder / f"card{card}"


def monitor(folder: Path) -> Path:
    """Return QEMU's control socket (QMP), by which faults begin while the machine runs."""
    return folder / "monitor"


def disk_file(folder: Path, disk: Disk) -> Path:
    return folder / f"{disk.serial}.raw"


def disks(machine: RehearsalMachine) -> tuple[Disk, ...]:
    """Return all disks: those that plans may overwrite, and the one from which the machine starts."""
    return machine.disks if machine.system_disk is None else (*machine.disks, machine.system_disk)


def make_disks(folder: Path, machine: RehearsalMachine) -> None:
    """Make the empty disks that plans may overwrite; a file takes as much space as was written."""
    for disk in machine.disks:
        with disk_file(folder, disk).open("wb") as file:
            file.truncate(disk.size_mib << 20)


def write_start(file: Path, guest: Sequence[str], training_s: int) -> None:
    """Write the script that a BMC or an outlet runs at power on. Its process becomes QEMU, so that killing it is a
    power cut. QEMU gets nothing of the caller's environment but the marks of its lab."""
    training = f"# Memory training: the machine has power, and nothing on the console.\nsleep {training_s}\n"
    environment = shlex.join(f"{name}={value}" for name, value in confinement.PLAIN_ENVIRONMENT.items())
    marks = " ".join(f'"{name}=${name}"' for name in confinement.LAB_MARKS)
    clean = f"env -i {environment} {marks} setpriv --pdeathsig KILL"
    file.write_text(f"#!/bin/sh\n{training if training_s else ''}exec {clean} {shlex.join(guest)} < /dev/null\n")
    file.chmod(0o755)
