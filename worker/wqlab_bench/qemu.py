"""Write the QEMU command line of an emulated device."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from wqlab_contracts.bench_addresses import Accelerator
from wqlab_contracts.specs import CpuArch, DeviceType, Topology, console_arguments

from . import confinement, devicetree, qemu_program, topology
from .firmware import smt_last

MACHINE: dict[CpuArch, str] = {
    # Without system management mode and PS/2, which no device uses and whose set-up takes a tenth of a boot.
    "x86_64": "q35,smm=off,i8042=off",
    # With an ITS, the interrupt controller would keep writing its tables into memory of the next kernel after kexec.
    # With random seeds in the device tree, kexec-tools would refuse to pass it on.
    "arm64": "virt,gic-version=3,its=off,dtb-randomness=off",
}

_KVM = Path("/dev/kvm")
TRANSLATED_MIB = 32
"""Size of the buffer for translated guest code. When it is full, QEMU discards it and translates running code again.

After kexec the buffer still holds translated code of the golden system. QEMU 7.2 removes it page by page when the next
kernel overwrites it, which takes a tenth of a millisecond each: five seconds while the initramfs is unpacked, and more
in the first workload that uses a page. A small buffer is soon discarded: from kexec to ready takes 3.5 s instead of 8 s
on two CPUs, and 5.3 s instead of 11.7 s on 24. A boot translates about 55 MiB.
"""


class UnsupportedTypeError(Exception):
    """The bench cannot emulate devices of this type; the message says why."""


@dataclass(frozen=True)
class Golden:
    """The golden system, which a device boots when it is switched on."""

    kernel: Path
    rootfs: Path
    ssh_key: str
    """Base64 blob of the ed25519 public key that may log in by SSH."""


@dataclass(frozen=True)
class Firmware:
    """Firmware files of devices, made in `folder` if they are missing."""

    folder: Path

    def arguments(self, device_type: str, topology: Topology, arch: CpuArch, machine: Sequence[str]) -> list[str]:
        """Return the arguments for the option ROM of an x86-64 device or the device tree of an arm64 device.

        `machine` is a command line with the machine, its CPUs and its memory. Raises firmware.FirmwareError and
        devicetree.DeviceTreeError.
        """
        if arch == "x86_64":
            return ["-option-rom", str(smt_last(self.folder))] if topology.numbering == "smt_last" else []
        if not topology.clusters:
            return []
        return ["-dtb", str(devicetree.device_tree(device_type, topology, machine, self.folder))]


def accelerator_arguments(accelerator: Accelerator) -> list[str]:
    """Return the -accel option. Emulation runs all CPUs of a device in turn on one host thread.

    With one thread per CPU, QEMU 7.2 may execute a breakpoint that the guest has just removed while it patches its own
    code, as function tracing does. The oops would be counted against the kernel. One thread also costs less on a host
    with few cores, and devices do not slow each other down.
    """
    return ["-accel", "kvm" if accelerator == "kvm" else f"tcg,thread=single,tb-size={TRANSLATED_MIB}"]


def describe_emulator(accelerator: Accelerator) -> str:
    """Return the description of the emulator for reports, for example `QEMU 7.2.22, tcg, one host thread`."""
    mode = "kvm" if accelerator == "kvm" else "tcg, one host thread"
    return f"{describe_version('x86_64')}, {mode}"


def describe_version(arch: CpuArch) -> str:
    """Return the emulator's name and version, for example `QEMU 7.2.22`; only the name if it does not tell."""
    output = subprocess.run(
        [*qemu_program.words(arch), "--version"], capture_output=True, text=True, check=False
    ).stdout
    version = re.search(r"version (\S+)", output)
    return f"QEMU {version.group(1)}" if version else "QEMU"


def command(
    device_type: DeviceType, golden: Golden, ssh_port: int, accelerator: Accelerator, firmware: Firmware
) -> list[str]:
    """Return the command line of a device that boots the golden system. Raises UnsupportedTypeError.

    `ssh_port` is the port on 127.0.0.1 that is forwarded to port 22 of the guest.
    """
    system = System(golden.kernel, golden.rootfs, golden_arguments(device_type, golden))
    return system_command(device_type, system, ssh_port, accelerator, firmware)


@dataclass(frozen=True)
class System:
    """What a guest boots: a kernel, its initramfs and its command line."""

    kernel: Path
    initramfs: Path
    arguments: str


def system_command(  # noqa: PLR0917 - a device, and what it boots
    device_type: DeviceType,
    system: System,
    ssh_port: int,
    accelerator: Accelerator,
    firmware: Firmware,
    options: Sequence[str] = (),
) -> list[str]:
    """Return the command line without console and monitor, which `Machine` adds. Raises UnsupportedTypeError.

    `options` are added to those of QEMU.
    """
    guest = guest_command(device_type, system, ssh_port, accelerator, firmware, options)
    visible = [system.kernel, system.initramfs, *_firmware_files(guest)]
    visible += [unpacked] if (unpacked := qemu_program.tree(device_type.arch)) else []
    is_virtualised = _accelerator_for(accelerator, device_type.arch) == "kvm"
    return ["nice", "-n", "5", *confinement.confine(guest, visible, [_KVM] if is_virtualised else [])]


def _firmware_files(guest: Sequence[str]) -> list[Path]:
    return [Path(value) for name, value in pairwise(guest) if name in {"-option-rom", "-dtb"}]


def guest_command(  # noqa: PLR0917 - a device, and what it boots
    device_type: DeviceType,
    system: System,
    ssh_port: int | str,
    accelerator: Accelerator,
    firmware: Firmware,
    options: Sequence[str] = (),
) -> list[str]:
    """Return QEMU's own command line, which anybody can run; see `system_command`. Raises UnsupportedTypeError."""
    emulation = device_type.emulation
    if emulation is None:
        raise UnsupportedTypeError(f"{device_type.name} is not an emulated device type")
    arch = device_type.arch
    try:
        layout = topology.arguments(device_type.topology, emulation.memory_mib, arch)
        machine = [
            *qemu_program.words(arch), "-nodefaults", "-no-user-config", "-display", "none", "-machine", MACHINE[arch],
            "-cpu", topology.cpu(emulation.cpu_model, device_type.topology, arch), *layout,
        ]  # fmt: skip
        extra = firmware.arguments(device_type.name, device_type.topology, arch, machine)
    except (topology.TopologyError, devicetree.DeviceTreeError) as error:
        raise UnsupportedTypeError(f"{device_type.name}: {error}") from error
    chosen = _accelerator_for(accelerator, arch)
    return [
        *machine, *confinement.SECCOMP, *accelerator_arguments(chosen), *extra,
        "-kernel", str(system.kernel), "-initrd", str(system.initramfs), "-append", system.arguments,
        # restrict: the guest has no access to any network; only its forwarded port is reachable.
        "-netdev", f"user,id=network,restrict=on,hostfwd=tcp:127.0.0.1:{ssh_port}-10.0.2.15:22",
        "-device", "virtio-net-pci,id=net0,netdev=network,romfile=",
        "-device", "virtio-rng-pci",
        *options,
    ]  # fmt: skip


def _accelerator_for(accelerator: Accelerator, arch: CpuArch) -> Accelerator:
    """Return `accelerator` if it can run guests of `arch`, else tcg. KVM needs the host's architecture, x86-64."""
    return accelerator if arch == "x86_64" else "tcg"


def golden_arguments(device_type: DeviceType, golden: Golden) -> str:
    """Return the kernel command line of the golden system."""
    words: Sequence[str] = (
        console_arguments(device_type.boot, device_type.units[0].netconsole),
        "panic=-1" if device_type.on_bench else "panic=10",
        "retain_initrd",
        f"wqlab.ssh={golden.ssh_key}",
        device_type.kernel_arguments,
    )
    return " ".join(word for word in words if word)
