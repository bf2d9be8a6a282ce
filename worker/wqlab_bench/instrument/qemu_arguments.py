"""Write the QEMU command line of an instrumented device, which boots a kernel and an initramfs once, without devices.

Everything that could make two boots differ is fixed: the clock counts instructions, the date and the seed of all
random numbers are given, and there is no network, disk or monitor. The console is a file, because QEMU delays the
guest's serial port when a socket's other end is slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wqlab_contracts.specs import CpuArch, Topology

from .. import confinement, qemu_program, topology
from ..qemu import MACHINE, Firmware

TRANSLATED_MIB = 1024
"""Size of the buffer for translated code, so large that it is never full: QEMU ends a CPU's turn when it discards the
buffer, and when that happens depends on the host's instruction set. Only used pages cost memory."""

FIRMWARE_FOLDERS = ("/usr/share/seabios", "/usr/share/qemu")
"""Folders of the installed QEMU in which a QEMU built by the lab finds firmware."""

_START_OF_CLOCK = "2026-01-01"


@dataclass(frozen=True)
class Model:
    """What makes an instrumented device a modelled one. All paths are absolute."""

    program: Path
    """The patched QEMU (wqlab_bench.model.build_qemu)."""
    costs: Path
    """File with the costs, as `write_costs` writes it."""


@dataclass(frozen=True)
class Guest:
    """The hardware of an instrumented device."""

    device_type: str
    arch: CpuArch
    topology: Topology
    cpu_model: str
    memory_mib: int
    instruction_ns: int = 1
    """Nanoseconds by which each instruction advances the guest's clock; a power of two."""
    l2_kib: int | None = None
    """Size of each core's L2 cache in the line model; None: unlimited."""
    l3_kib: int | None = None
    """Size of each L3 cache in the line model; None: unlimited."""
    model: Model | None = None
    """None: all CPUs share a clock, which counts instructions."""

    @property
    def program(self) -> list[str]:
        """Return the beginning of QEMU's command line."""
        if self.model is None:
            return qemu_program.words(self.arch)
        return [str(self.model.program), *(word for folder in FIRMWARE_FOLDERS for word in ("-L", folder))]

    @property
    def machine(self) -> str:
        # Without HPET, the kernel has the TSC, which is a CPU's own virtual clock, as its only precise one.
        without = ",hpet=off" if self.model is not None and self.arch == "x86_64" else ""
        return MACHINE[self.arch] + without

    @property
    def cpu(self) -> str:
        # Linux that sees a hypervisor takes spinlocks by test and set, not in the order of a queue (virt_spin_lock() in
        # arch/x86/include/asm/qspinlock.h). The machines that a model describes use the queue.
        without = ",-hypervisor" if self.model is not None and self.arch == "x86_64" else ""
        return topology.cpu(self.cpu_model, self.topology, self.arch) + without


@dataclass(frozen=True)
class Boot:
    """One boot: what to start and where its output goes. All paths are absolute."""

    kernel: Path
    initramfs: Path
    command_line: str
    seed: int
    """Seed of the guest's random numbers, 0 to 2**32 - 1. It shifts times and addresses."""
    output: Path
    """File for the plugin's stream (see stream.read); created."""
    console: Path
    """File for the console; created."""
    layout: Path | None = None
    """Where the kernel keeps its data (plugin/kernel_data.h), for the names of cache lines; None: no names."""


def arguments(guest: Guest, boot: Boot, plugin: Path | None, firmware: Firmware) -> list[str]:
    """Return the command line of QEMU, without confinement.

    Without `plugin` nothing is counted, but the same instructions are executed.
    Raises topology.TopologyError, firmware.FirmwareError and devicetree.DeviceTreeError.
    """
    layout = topology.arguments(guest.topology, guest.memory_mib, guest.arch)
    machine = [
        *guest.program, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-machine", guest.machine, "-cpu", guest.cpu, *layout,
    ]  # fmt: skip
    return [
        *machine, *confinement.SECCOMP, "-accel", f"tcg,thread=single,tb-size={TRANSLATED_MIB}",
        # Time does not wait for the host, and idle time is skipped.
        "-icount", f"shift={guest.instruction_ns.bit_length() - 1},sleep=off,align=off",
        "-rtc", f"base={_START_OF_CLOCK},clock=vm", "-seed", str(boot.seed),
        *firmware.arguments(guest.device_type, guest.topology, guest.arch, machine),
        "-kernel", str(boot.kernel), "-initrd", str(boot.initramfs), "-append", boot.command_line,
        "-chardev", f"file,id=console,path={boot.console}", "-serial", "chardev:console",
        *(["-plugin", _plugin_option(guest, boot, plugin)] if plugin else []),
    ]  # fmt: skip


def command(guest: Guest, boot: Boot, plugin: Path | None, firmware: Firmware) -> list[str]:
    """Return the command line of QEMU, confined: it can write only in the folders of its two output files."""
    words = arguments(guest, boot, plugin, firmware)
    extra = [words[words.index(option) + 1] for option in ("-option-rom", "-dtb") if option in words]
    visible = [boot.kernel, boot.initramfs, *([plugin] if plugin else []), *map(Path, extra)]
    visible += [boot.layout] if boot.layout else []
    if guest.model is not None:
        visible += [guest.model.program, guest.model.costs]
    elif unpacked := qemu_program.tree(guest.arch):
        visible.append(unpacked)
    writable = sorted({boot.output.parent, boot.console.parent})
    return ["nice", "-n", "5", *confinement.confine(words, visible, writable=writable)]


def places(machine: Topology) -> list[tuple[int, int, int]]:
    """Return core, L3 domain and NUMA node of each CPU, in QEMU's order of CPUs.

    A cluster of cores without L3 cache shares its L2 cache and counts as an L3 domain.
    """
    domains = [domain for domain, cores in enumerate(machine.domain_cores) for _ in range(cores)]
    return [
        (core, domain, topology.node_of_domain(machine, domain))
        for core, domain in enumerate(domains)
        for _ in range(machine.threads_per_core)
    ]


def guest_cpus(machine: Topology) -> Sequence[int]:
    """Return the guest's number of each CPU, in QEMU's order of CPUs, in which the plugin's windows number them."""
    return [cpu for siblings in topology.siblings(machine) for cpu in siblings]


def _plugin_option(guest: Guest, boot: Boot, plugin: Path) -> str:
    cpus = "/".join(f"{core}:{l3}:{node}" for core, l3, node in places(guest.topology))
    words = [str(plugin), f"output={boot.output}", f"cpus={cpus}", f"memory_mib={guest.memory_mib}"]
    words += [f"{name}={size}" for name, size in (("l2_kib", guest.l2_kib), ("l3_kib", guest.l3_kib)) if size]
    words += [f"costs={guest.model.costs}", f"seed={boot.seed}"] if guest.model is not None else []
    words += [f"layout={boot.layout}"] if boot.layout else []
    return ",".join(words)
