"""The command line of a board's QEMU."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wqlab_contracts.published import Accelerator
from wqlab_contracts.specs import DeviceType

from . import topology

PROGRAM = "qemu-system-x86_64"
MACHINE = "q35,smm=off,i8042=off"
"""Without system management mode and PS/2, which no board uses: their set-up costs a tenth of a boot."""


TRANSLATED_MIB = 32
"""Room for translated guest code; when it is full, all of it goes and what still runs is translated anew.

After kexec the golden system's code is still held as translated. QEMU 7.2 takes it out piece by piece as the next
kernel writes over it, each time at a tenth of a millisecond: five seconds while the initramfs is unpacked, and more in
whatever workload is the first to use a page. With little room it is gone soon: 3.5 s from kexec to ready instead of 8
on two CPUs, 5.3 instead of 11.7 on 24. A boot translates about 55 MiB.
"""


class UnsupportedTypeError(Exception):
    """The bench cannot build boards of this type; the text says why."""


@dataclass(frozen=True)
class Golden:
    """What a board boots when it is switched on."""

    kernel: Path
    rootfs: Path
    ssh_key: str
    """Base64 blob of the ed25519 public key that may log in."""


def accelerator_arguments(accelerator: Accelerator) -> list[str]:
    """Emulation runs a board's CPUs in turn on one host thread.

    With a thread for each, QEMU 7.2 may execute the breakpoint that the guest has just taken out while it patches its
    own code (function tracing does): an oops that would be held against the kernel. In turn is also the cheaper way on
    a host with few cores, and boards do not slow each other down.
    """
    return ["-accel", "kvm" if accelerator == "kvm" else f"tcg,thread=single,tb-size={TRANSLATED_MIB}"]


def described(accelerator: Accelerator) -> str:
    """`QEMU 7.2.22, tcg, one host thread`: what a report says of boards that run under `accelerator_arguments`."""
    how = "kvm" if accelerator == "kvm" else "tcg, one host thread"
    said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"version (\S+)", said)
    return f"QEMU {version.group(1)}, {how}" if version else f"QEMU, {how}"


def command(
    device_type: DeviceType, golden: Golden, ssh_port: int, accelerator: Accelerator, smt_last_rom: Path | None
) -> list[str]:
    """Everything but console and monitor, which `Machine` adds. Raises UnsupportedTypeError.

    `ssh_port`: where the guest's port 22 appears on 127.0.0.1. `smt_last_rom`: needed for that numbering only.
    """
    emulation = device_type.emulation
    if emulation is None:
        raise UnsupportedTypeError(f"{device_type.name} is real hardware")
    if device_type.arch != "x86_64":
        raise UnsupportedTypeError(f"{device_type.name} is {device_type.arch}: the bench emulates x86_64 only")
    try:
        layout = topology.arguments(device_type.topology, emulation.memory_mib)
    except topology.TopologyError as error:
        raise UnsupportedTypeError(f"{device_type.name}: {error}") from error
    rom: list[str] = []
    if device_type.topology.numbering == "smt_last":
        if smt_last_rom is None:
            raise UnsupportedTypeError(f"{device_type.name}: numbering smt_last needs the bench's option ROM")
        rom = ["-option-rom", str(smt_last_rom)]
    return [
        "nice", "-n", "5", PROGRAM, "-nodefaults", "-no-user-config", "-display", "none", "-machine", MACHINE,
        *accelerator_arguments(accelerator), "-cpu", emulation.cpu_model, *layout, *rom,
        "-kernel", str(golden.kernel), "-initrd", str(golden.rootfs), "-append", golden_arguments(device_type, golden),
        # restrict: the guest reaches nothing, only its forwarded port is reachable.
        "-netdev", f"user,id=network,restrict=on,hostfwd=tcp:127.0.0.1:{ssh_port}-10.0.2.15:22",
        "-device", "virtio-net-pci,id=net0,netdev=network,romfile=",
        "-device", "virtio-rng-pci",
    ]  # fmt: skip


def golden_arguments(device_type: DeviceType, golden: Golden) -> str:
    """The golden system's kernel command line."""
    boot = device_type.boot
    words: Sequence[str] = (
        f"console={boot.console_device},{boot.console_speed}",
        "panic=-1",
        "retain_initrd",
        f"wqlab.ssh={golden.ssh_key}",
        device_type.kernel_arguments,
    )
    return " ".join(word for word in words if word)
