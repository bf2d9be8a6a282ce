"""The instrumented backend: boots in an emulator that executes them exactly alike, and counts what they do.

There is no golden system, network, disk or login: the emulator starts the kernel and an initramfs with the plan, and
the results leave through the emulator's plugin. This package does not import labgrid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from wqlab_bench.instrument import build_plugin
from wqlab_bench.instrument.qemu_arguments import Model
from wqlab_bench.model import build_qemu
from wqlab_bench.qemu import Firmware, describe_version
from wqlab_contracts.enums import Arm, ErrorKind, Outcome
from wqlab_contracts.messages import Artifact, BlockPlan, Failure, Kernel, RunJob, RunResult
from wqlab_contracts.specs.cost_profile import cost_profile_hash, write_costs

from ...measure.measuring_loop import measure
from ...measure.script_calls import SETUP_TIMEOUT_S, calls
from ...stacks.data_layout import data_layout
from ..console_tap import Wakeup
from ..interface import Cancel, EventSink
from . import boot_image
from .boots import Boots
from .emulator import Emulator, parallel_boots
from .guest import brings_up_one_by_one, command_line, guest_of
from .instrumented_device import InstrumentedDevice
from .profiles import Profiler

__all__ = ["InstrumentedBackend"]

MOST_BLOCKS = 100
"""Most blocks of a run. The image has the calls of all of them, so that it and the counts do not depend on how many
blocks a submission asks for, or how many are left."""


class InstrumentedBackend:
    """Backend for instrumented devices.

    `rootfs()` returns the root filesystem image for the device's architecture. `fetch(artifact)` returns a file's path
    on this machine and checks its hash. `files_of(job, kernel)` returns the plan's modules for one kernel. Plugin and
    firmware are made in `cache`, boots in `scratch`.
    """

    def __init__(
        self,
        *,
        cache: Path,
        scratch: Path,
        rootfs: Callable[[], Path],
        fetch: Callable[[Artifact], Path],
        files_of: Callable[[RunJob, Kernel], dict[str, bytes]],
    ) -> None:
        self._cache = cache
        self._scratch = scratch
        self._rootfs = rootfs
        self._fetch = fetch
        self._files_of = files_of

    def execute(self, job: RunJob, remaining: Sequence[BlockPlan], emit: EventSink, cancel: Cancel) -> RunResult:
        try:
            program = build_qemu.find_program(self._cache, job.device.arch) if job.device.costs is not None else None
            plugin = build_plugin.plugin(self._cache, job.device.arch, program)
            rootfs = self._rootfs()
        except (build_plugin.InstrumentUnsupported, FileNotFoundError) as error:
            return RunResult(
                outcome=Outcome.FAILED,
                failure=Failure(kind=ErrorKind.INFRASTRUCTURE, summary=str(error)),
                device_suspect=True,
            )
        self._scratch.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f"instrumented-{job.run_id}-", dir=self._scratch) as folder:
            emulator = self._emulator(job, remaining, plugin, rootfs, program, Path(folder))
            boots = Boots(emulator, parallel_boots(emulator.guest.memory_mib))
            try:
                device = InstrumentedDevice(
                    job, remaining, boots=boots, profiler=Profiler(job, self._fetch, emulator.guest, plugin),
                    facts=_facts(job, plugin), emit=emit, cancel=cancel, wakeup=Wakeup(),
                )  # fmt: skip
                return measure(job, remaining, device, emit, cancel)
            finally:
                boots.close()

    def _emulator(  # noqa: PLR0917 - what a run's boots have in common
        self,
        job: RunJob,
        remaining: Sequence[BlockPlan],
        plugin: Path,
        rootfs: Path,
        program: Path | None,
        folder: Path,
    ) -> Emulator:
        initramfs: dict[Arm, Path] = {}
        layouts: dict[Arm, list[Path]] = {}
        for arm, kernel in job.kernels.items():
            initramfs[arm] = folder / f"initramfs-{arm.value}"
            boot_image.write(rootfs, job, range(MOST_BLOCKS), self._files_of(job, kernel), initramfs[arm])
            names = [data_layout(linked, self._fetch) for linked in job.kernels_of(arm)]
            if all(names):
                layouts[arm] = [folder / f"layout-{arm.value}-{number}" for number in range(len(names))]
                for path, text in zip(layouts[arm], names, strict=True):
                    path.write_text(text)
        return Emulator(
            guest=guest_of(job.device, _model(job, program, folder) if program else None),
            kernels={arm: [self._fetch(each.image) for each in job.kernels_of(arm)] for arm in job.kernels},
            initramfs=initramfs,
            command_line=partial(command_line, job.device),
            layouts=layouts,
            plugin=plugin,
            firmware=Firmware(self._cache / "firmware"),
            scratch=folder,
            limit_s=_limit_s(job, remaining),
        )


def _model(job: RunJob, program: Path, folder: Path) -> Model:
    """Write the cost profile of a modelled device to the file `costs` in `folder`, for the plugin."""
    costs = folder / "costs"
    assert job.device.costs is not None  # noqa: S101 - only then is there a program
    write_costs(job.device.costs, costs, job.device.topology.l3_domains)
    return Model(program, costs)


def _facts(job: RunJob, plugin: Path) -> Mapping[str, str]:
    device = job.device
    assert device.emulation is not None  # noqa: S101 - the backend was chosen by it
    facts = {"emulator plugin": build_plugin.sha256(plugin)}
    if device.costs is None:
        clock = f"{device.emulation.instruction_ns} ns for each instruction"
        return {"emulator": f"{describe_version(device.arch)}, tcg, {clock}", **facts}
    facts["emulator"] = f"{build_qemu.describe()}, tcg, CPUs in virtual time"
    facts["cost profile"] = f"{device.costs.name} sha256:{cost_profile_hash(device.costs)}"
    if brings_up_one_by_one(device):
        facts["secondary CPUs"] = "brought up one by one (the emulator's choice)"
    return facts


def _limit_s(job: RunJob, remaining: Sequence[BlockPlan]) -> float:
    """Return the most CPU time of a boot. The limits of the calls are in the guest's time, which may pass slower."""
    measuring = max(
        (sum(call.limit_s for call in calls(job, plan.block) if call.action == "measure") for plan in remaining),
        default=0.0,
    )
    return job.device.boot.variant_timeout_s + SETUP_TIMEOUT_S + measuring
