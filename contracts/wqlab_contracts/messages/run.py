"""Run job: kernels, device and plan sent to a worker, and the result."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..enums import Arm, JobKind, Outcome, RunPurpose
from ..specs import (
    Backend,
    BootMethod,
    Conditions,
    CpuArch,
    Emulation,
    ExternalPower,
    LavaMapping,
    Name,
    Netconsole,
    OwnSystem,
    Profile,
    TestPlan,
    Topology,
)
from ..specs.cost_profile import CostProfile
from .apply import TOUCHED_LIMIT
from .base import Artifact, Failure, Message
from .changed_lines import CHANGED_LIMIT, ChangedLines


class Kernel(Message):
    """A kernel to boot."""

    build_id_gnu: str
    release: str
    image: Artifact
    """Kernel image, fetched by its hash."""
    figures: bool = True
    modules: dict[str, Artifact] = Field(default_factory=dict)
    """Modules that the plan needs and that were built against this kernel."""
    failed_modules: dict[str, str] = Field(default_factory=dict)
    """Module that the plan needs and that does not build against this kernel -> reason."""
    own_modules: Artifact | None = None
    """Tar of the kernel's installed modules, if the plan needs one of them."""
    workqueue_layout: Artifact | None = None
    """Offsets of the workqueue counters in the kernel's memory; null if the build has none."""
    recipe: str
    """Name of the recipe."""
    vmlinux: Artifact | None = None
    """Kernel with debug information, to decode the addresses of its reports."""
    sources: Artifact | None = None
    """Zip archive of the source files of vmlinux; null if it was built without debug information."""


class BlockPlan(Message):
    """One block: the arms of its boots in order. A settings study has one boot per block."""

    block: int
    arms: list[Arm]
    first_attempt: int = 0
    """First attempt number; earlier attempts were discarded by earlier holders of the run."""


class LavaBoot(Message):
    """Boot settings of a device in a LAVA lab."""

    mapping: LavaMapping
    template: str
    """Jinja2 template of the job definition."""


class DeviceFacts(Message):
    """Description of the assigned device."""

    name: Name
    device_type: Name
    lab: Name
    arch: CpuArch
    topology: Topology
    boot: BootMethod
    conditions: Conditions = Conditions()
    emulated: bool
    scratch: list[str] = Field(default_factory=list)
    power: ExternalPower | None = None
    netconsole: Netconsole | None = None
    """Where its kernels send their log; None for a device with a serial console. Its console has no input then."""
    own_system: OwnSystem | None = None
    """Operating system that it starts by default; None: the golden system starts by default."""
    backend: Backend = "labgrid"
    lava: LavaBoot | None = None
    """Boot settings of a LAVA device; None for other devices."""
    emulation: Emulation | None = None
    """Settings of the emulator of an instrumented device; None for other devices."""
    costs: CostProfile | None = None
    """Cost profile of a modelled device; None for other devices."""


class LabPower(Message):
    """How a lab's devices are switched off when a session has ended without doing it."""

    power: dict[str, ExternalPower]
    """Commands of the devices that have no power port, by name."""
    own_systems: list[str] = Field(default_factory=list)
    """Devices on which an operating system of their own may run: their power is not cut."""


class RunJob(Message):
    """Job that runs one plan on one device."""

    kind: Literal[JobKind.RUN] = JobKind.RUN
    run_id: int
    purpose: RunPurpose
    priority: int = Field(default=50, ge=0, le=100)
    """Priority of the submission; also used in the queue of a LAVA server."""
    device: DeviceFacts
    plan: TestPlan
    profile: Profile
    """The plan's profile for this device with the submission's settings and parameters applied."""
    files: dict[str, str]
    """Files of the plan to send to the device: relative name -> text."""
    kernels: dict[Arm, Kernel]
    """Kernels by arm; a health check has only the baseline, the golden kernel."""
    layouts: dict[Arm, list[Kernel]] = Field(default_factory=dict)
    """Kernels of each arm in several layouts: block b boots entry b modulo their number. Empty: `kernels`."""
    blocks: list[BlockPlan]
    completed_blocks: list[int] = Field(default_factory=list)
    """Numbers of the blocks that earlier attempts have finished."""
    seed: int
    """Random seed for the order of settings within each boot."""
    touched: list[str] = Field(default_factory=list, max_length=TOUCHED_LIMIT)
    """Functions that the series changes, for traced boots and the metrics `touched_*` of instrumented devices."""
    changed: list[ChangedLines] = Field(default_factory=list, max_length=CHANGED_LIMIT)
    """Lines that the series changes, for instrumented devices; empty for others."""

    def kernel(self, arm: Arm, block: int) -> Kernel:
        """Return the kernel that an arm boots in a block."""
        layouts = self.layouts.get(arm)
        return layouts[block % len(layouts)] if layouts else self.kernels[arm]

    def kernels_of(self, arm: Arm) -> list[Kernel]:
        """Return the kernels that an arm boots: block b boots entry b modulo their number."""
        return self.layouts.get(arm) or [self.kernels[arm]]


class RunResult(Message):
    """Result of a run."""

    kind: Literal[JobKind.RUN] = JobKind.RUN
    outcome: Outcome
    failure: Failure | None = None
    """An infrastructure failure is retried; a kernel failure means that the variant finished no block."""
    arm: Arm | None = None
    """Arm whose kernel failed, if the failure is a kernel's."""
    device_suspect: bool = False
    """True if the device may be faulty; a health check follows."""
    equipment_unreachable: bool = False
    """True if the lab's own equipment, a console server or a power controller, did not answer, so that nothing is known
    of the device: a health check that ends like this is repeated."""
