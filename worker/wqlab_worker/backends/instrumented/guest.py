"""Describe the guest of an instrumented boot: hardware and kernel command line."""

from __future__ import annotations

from collections.abc import Mapping

from wqlab_bench.instrument import qemu_arguments
from wqlab_contracts.messages import DeviceFacts
from wqlab_contracts.specs import CpuArch

PARALLEL_CPUS = 4
"""Most CPUs of a modelled device that the kernel brings up at the same time. While it does, all of them spin; with 16
CPUs Linux 7.3 does so for a second of virtual time, which takes half a minute of CPU time on the host."""


VIRTUAL_CLOCKS: Mapping[CpuArch, tuple[str, ...]] = {"x86_64": ("tsc", "tsc-early"), "arm64": ("arch_sys_counter",)}
"""Clock sources of the kernel that read the CPU's own virtual time. Linux calls the TSC tsc-early until it has refined
its frequency, a second after the start (arch/x86/kernel/tsc.c)."""


def clock_problem(device: DeviceFacts, environment: Mapping[str, str]) -> str:
    """Return why the times of a modelled boot are not virtual time; empty if they are, or without a cost profile."""
    clock, expected = environment.get("clock source", "unknown"), VIRTUAL_CLOCKS[device.arch]
    if device.costs is None or clock in expected:
        return ""
    return (
        f"the kernel's clock source is {clock}, not {expected[0]}, which has the virtual time of a modelled CPU; the "
        "console says why the kernel chose it"
    )


def brings_up_one_by_one(device: DeviceFacts) -> bool:
    """Return True if the kernel is told to bring up the CPUs one after the other."""
    return device.costs is not None and device.topology.cpus > PARALLEL_CPUS


def guest_of(device: DeviceFacts, model: qemu_arguments.Model | None = None) -> qemu_arguments.Guest:
    """Return the hardware of an instrumented device; `model` is that of a modelled one."""
    emulation = device.emulation
    assert emulation is not None  # noqa: S101 - the backend was chosen by it
    return qemu_arguments.Guest(
        device_type=device.device_type,
        arch=device.arch,
        topology=device.topology,
        cpu_model=emulation.cpu_model,
        memory_mib=emulation.memory_mib,
        instruction_ns=emulation.instruction_ns if model is None else 1,
        l2_kib=emulation.l2_kib,
        l3_kib=emulation.l3_kib,
        model=model,
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
        "cpuhp.parallel=0" if brings_up_one_by_one(device) else "",
    ]
    return " ".join(word for word in words if word)


def token_of(seed: int) -> str:
    """Return the token of a boot. It is not random, because both boots of a seed have the same command line."""
    return f"{seed:016x}"
