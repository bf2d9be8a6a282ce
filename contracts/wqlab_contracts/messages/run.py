"""A run as it is handed to a worker, and how it ended."""

from __future__ import annotations

from pydantic import Field

from ..enums import Arm, Outcome, RunPurpose
from ..specs import (
    Backend,
    BootMethod,
    Conditions,
    CpuArch,
    ExternalPower,
    LavaMapping,
    Name,
    Profile,
    TestPlan,
    Topology,
)
from .base import Artifact, Failure, Message


class Kernel(Message):
    build_id_gnu: str
    release: str
    image: Artifact
    """The kernel image; fetched by hash."""
    figures: bool = True
    modules: dict[str, Artifact] = Field(default_factory=dict)
    """Of those that the plan needs, the ones that were built against this kernel."""
    failed_modules: dict[str, str] = Field(default_factory=dict)
    """Those that the plan needs and that do not build against it -> why."""
    own_modules: Artifact | None = None
    """A tar of what this kernel would install; the plan needs one of them."""
    workqueue_layout: Artifact | None = None
    """Where this kernel keeps its workqueues' counters; null for a build from before that was looked up."""


class BlockPlan(Message):
    """One block: its boots in order. A settings study has one boot a block."""

    block: int
    arms: list[Arm]
    first_attempt: int = 0
    """Attempt number to start from; earlier ones were discarded by earlier holders of the run."""


class LavaBoot(Message):
    """How to boot a device of a LAVA lab."""

    mapping: LavaMapping
    template: str
    """Jinja2 text of a job's definition."""


class DeviceFacts(Message):
    """What a worker must know of the device it was given."""

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
    backend: Backend = "labgrid"
    lava: LavaBoot | None = None
    """Of a LAVA device."""


class RunJob(Message):
    run_id: int
    purpose: RunPurpose
    priority: int = Field(default=50, ge=0, le=100)
    """Of the submission; where a lab has a queue of its own, the run stands in it with this."""
    device: DeviceFacts
    previous_holder: bool
    """A holder before this one may have left the place acquired: release it and power-cycle first."""
    plan: TestPlan
    profile: Profile
    """The plan's profile for this device with the submission's settings and parameters applied."""
    files: dict[str, str]
    """The plan's files that go to the device: relative name -> text."""
    kernels: dict[Arm, Kernel]
    """A health check has the baseline (golden) kernel only."""
    blocks: list[BlockPlan]
    seed: int
    """Shuffles the order of settings inside each boot."""


class RunResult(Message):
    outcome: Outcome
    failure: Failure | None = None
    """kind infrastructure: retried; kind kernel: the variant could not finish any block."""
    device_suspect: bool = False
    """The device itself is in doubt; a health check follows."""
