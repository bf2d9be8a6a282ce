"""Make one boot for a run on another host."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import get_args

import structlog

from wqlab_bench.instrument import build_plugin, identity
from wqlab_bench.qemu import Firmware
from wqlab_contracts.messages.shared_boots import SharedBootJob
from wqlab_contracts.specs import CpuArch

from .emulator import HOST_MIB, Emulator, Ended, StopRequest, available_mib
from .guest import command_line, guest_of

log = structlog.get_logger()


def emulators(cache: Path) -> dict[CpuArch, str]:
    """Return the emulators with which this host can make boots, by the guest's architecture."""
    found: dict[CpuArch, str] = {}
    for arch in get_args(CpuArch):
        try:
            found[arch] = identity.identify(cache, arch)
        except build_plugin.InstrumentUnsupported as error:
            log.debug("no boots for other hosts", arch=arch, reason=str(error))
    return found


def largest_guest_mib(reserved_mib: int) -> int:
    """Return the memory of the largest guest for which this host has room beside `reserved_mib`; 0 if it has none."""
    return max(0, available_mib() - reserved_mib - HOST_MIB)


def footprint_mib(job: SharedBootJob) -> int:
    """Return the memory that the boot may need on this host, in MiB."""
    return guest_of(job.device).memory_mib + HOST_MIB


def make_boot(
    job: SharedBootJob, *, kernel: Path, initramfs: Path, cache: Path, scratch: Path, stop: StopRequest
) -> Ended:
    """Run the boot in a folder of `scratch`, until it ends or `stop` is set. Raises InstrumentUnsupported."""
    layout = scratch / "layout"
    layout.write_text(job.layout)
    emulator = Emulator(
        guest=guest_of(job.device),
        kernels={job.arm: [kernel]},
        initramfs={job.arm: initramfs},
        layouts={job.arm: [layout]} if job.layout else {},
        command_line=partial(command_line, job.device),
        plugin=build_plugin.plugin(cache, job.device.arch),
        firmware=Firmware(cache / "firmware"),
        scratch=scratch,
        limit_s=job.limit_s,
    )
    return emulator.run((job.arm, job.seed), stop)
