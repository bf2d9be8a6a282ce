"""Describe the guest of an instrumented boot: hardware and kernel command line."""

from __future__ import annotations

from wqlab_bench.instrument import qemu_arguments
from wqlab_contracts.messages import DeviceFacts


def guest_of(device: DeviceFacts) -> qemu_arguments.Guest:
    """Return the hardware of an instrumented device."""
    emulation = device.emulation
    assert emulation is not None  # noqa: S101 - the backend was chosen by it
    return qemu_arguments.Guest(
        device_type=device.device_type,
        arch=device.arch,
        topology=device.topology,
        cpu_model=emulation.cpu_model,
        memory_mib=emulation.memory_mib,
        instruction_ns=emulation.instruction_ns,
        l2_kib=emulation.l2_kib,
        l3_kib=emulation.l3_kib,
    )


def command_line(device: DeviceFacts, seed: int) -> str:
    """Return the kernel arguments of a boot, the same for both kernels of a block."""
    boot = device.boot
    words = [
        f"console={boot.console_device},{boot.console_speed}",
        "panic=-1",  # the emulator ends instead of a reboot, when the report is complete
        f"wqlab.token={token_of(seed)}",
        f"wqlab.seed={seed}",
        boot.kernel_arguments,
    ]
    return " ".join(word for word in words if word)


def token_of(seed: int) -> str:
    """Return the token of a boot. It is not random, because both boots of a seed have the same command line."""
    return f"{seed:016x}"
