"""The command line of a device's QEMU."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wqlab_contracts.bench_addresses import Accelerator
from wqlab_contracts.specs import CpuArch, DeviceType

from . import devicetree, topology
from .firmware import smt_last

PROGRAM: dict[CpuArch, str] = {"x86_64": "qemu-system-x86_64", "arm64": "qemu-system-aarch64"}
MACHINE: dict[CpuArch, str] = {
    # Without system management mode and PS/2, which no device uses: their set-up costs a tenth of a boot.
    "x86_64": "q35,smm=off,i8042=off",
    # With an ITS, the interrupt controller goes on writing its tables into the next kernel's memory after kexec.
    # Random seeds in the device tree would make kexec-tools refuse to hand it on.
    "arm64": "virt,gic-version=3,its=off,dtb-randomness=off",
}

TRANSLATED_MIB = 32
"""Room for translated guest code; when it is full, all of it goes and what still runs is translated anew.

After kexec the golden system's code is still held as translated. QEMU 7.2 takes it out piece by piece as the next
kernel writes over it, each time at a tenth of a millisecond: five seconds while the initramfs is unpacked, and more in
whatever workload is the first to use a page. With little room it is gone soon: 3.5 s from kexec to ready instead of 8
on two CPUs, 5.3 instead of 11.7 on 24. A boot translates about 55 MiB.
"""


class UnsupportedTypeError(Exception):
    """The bench cannot build devices of this type; the text says why."""


@dataclass(frozen=True)
class Golden:
    """What a device boots when it is switched on."""

    kernel: Path
    rootfs: Path
    ssh_key: str
    """Base64 blob of the ed25519 public key that may log in."""


@dataclass(frozen=True)
class Firmware:
    """What a device has beside its CPUs and memory before any system is loaded; made in `folder` when it is missing."""

    folder: Path

    def x86_64(self, device_type: DeviceType) -> list[str]:
        """Raises firmware.FirmwareError."""
        numbering = device_type.topology.numbering
        return ["-option-rom", str(smt_last(self.folder))] if numbering == "smt_last" else []

    def arm64(self, device_type: DeviceType, machine: Sequence[str]) -> list[str]:
        """Raises devicetree.DeviceTreeError."""
        if not device_type.topology.clusters:
            return []
        return ["-dtb", str(devicetree.device_tree(device_type, machine, self.folder))]


def accelerator_arguments(accelerator: Accelerator) -> list[str]:
    """Emulation runs a device's CPUs in turn on one host thread.

    With a thread for each, QEMU 7.2 may execute the breakpoint that the guest has just taken out while it patches its
    own code (function tracing does): an oops that would be held against the kernel. In turn is also the cheaper way on
    a host with few cores, and devices do not slow each other down.
    """
    return ["-accel", "kvm" if accelerator == "kvm" else f"tcg,thread=single,tb-size={TRANSLATED_MIB}"]


def described(accelerator: Accelerator) -> str:
    """`QEMU 7.2.22, tcg, one host thread`: what a report says of devices that run under `accelerator_arguments`."""
    how = "kvm" if accelerator == "kvm" else "tcg, one host thread"
    said = subprocess.run([PROGRAM["x86_64"], "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"version (\S+)", said)
    return f"QEMU {version.group(1)}, {how}" if version else f"QEMU, {how}"


def command(
    device_type: DeviceType, golden: Golden, ssh_port: int, accelerator: Accelerator, firmware: Firmware
) -> list[str]:
    """Everything but console and monitor, which `Machine` adds. Raises UnsupportedTypeError.

    `ssh_port`: where the guest's port 22 appears on 127.0.0.1.
    """
    emulation = device_type.emulation
    if emulation is None:
        raise UnsupportedTypeError(f"{device_type.name} is real hardware")
    arch = device_type.arch
    try:
        layout = topology.arguments(device_type.topology, emulation.memory_mib, arch)
        machine = [
            PROGRAM[arch], "-nodefaults", "-no-user-config", "-display", "none", "-machine", MACHINE[arch],
            "-cpu", emulation.cpu_model, *layout,
        ]  # fmt: skip
        extra = firmware.x86_64(device_type) if arch == "x86_64" else firmware.arm64(device_type, machine)
    except (topology.TopologyError, devicetree.DeviceTreeError) as error:
        raise UnsupportedTypeError(f"{device_type.name}: {error}") from error
    return [
        "nice", "-n", "5", *machine, *accelerator_arguments(_runnable(accelerator, arch)), *extra,
        "-kernel", str(golden.kernel), "-initrd", str(golden.rootfs), "-append", golden_arguments(device_type, golden),
        # restrict: the guest reaches nothing, only its forwarded port is reachable.
        "-netdev", f"user,id=network,restrict=on,hostfwd=tcp:127.0.0.1:{ssh_port}-10.0.2.15:22",
        "-device", "virtio-net-pci,id=net0,netdev=network,romfile=",
        "-device", "virtio-rng-pci",
    ]  # fmt: skip


def _runnable(accelerator: Accelerator, arch: CpuArch) -> Accelerator:
    """KVM runs guests of the host's own architecture only; the lab's hosts are x86-64."""
    return accelerator if arch == "x86_64" else "tcg"


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
