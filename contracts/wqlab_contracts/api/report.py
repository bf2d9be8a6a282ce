"""REST resources of a submission's report: comparisons, environment and failures."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from ..enums import Arm, NotMeasuredCause, Outcome, Verdict
from ..messages import Failure, MeasuredTopology, Message
from ..messages.looks import LookRecord
from ..specs import Reference, TestPlan, Topology
from .canaries import CanaryRecord
from .comparison import ArmSummary, Comparison, Mode
from .curves import MetricCurve
from .explanations import Explanation
from .instrument import InstrumentCell, NoiseFloor
from .ladder import Ladder
from .ran import RanReport
from .runs import FindingView
from .submissions import SubmissionView
from .sweeps import SweepReport
from .waits import WaitCell
from .workqueues import WorkqueueCell

__all__ = [
    "ArmSummary",
    "AttemptView",
    "BootValue",
    "Comparison",
    "Environment",
    "EnvironmentDifference",
    "Mode",
    "Report",
    "TargetReport",
    "UnsupportedView",
]


class AttemptView(Message):
    """A failed attempt of an apply, build or run; the report lists all of them."""

    what: Literal["apply", "build", "run"] = "run"
    run_id: int | None
    build_id: int | None = None
    plan: str | None
    """null for an apply or a build, which belong to all targets of the submission."""
    device_type: str | None
    device: str
    """The device, or for an apply or a build the worker."""
    block: int | None
    arm: Arm | None
    attempt: int
    failure: Failure
    at: datetime | None = None


class UnsupportedView(Message):
    """A setting or metric that an arm's boots did not measure."""

    scenario: str
    setting: str
    metric: str | None
    arm: Arm
    cause: NotMeasuredCause
    reason: str
    """Description of the cause."""


class EnvironmentDifference(Message):
    """A fact of the environment that differs between the arms."""

    name: str
    """Name of the fact, `kernel arguments`, or a configuration option."""
    baseline: str
    candidate: str


class Environment(Message):
    """Environment as reported by a run's boots."""

    device: str
    topology: MeasuredTopology | None
    cmdline: dict[Arm, str]
    release: dict[Arm, str]
    build_id_gnu: dict[Arm, str]
    facts: dict[str, str]
    commands: dict[str, str]
    """Scenario -> workload command line."""
    differences: list[EnvironmentDifference] = Field(default_factory=list)


class BootValue(Message):
    """One boot's value of one metric, as compared and drawn in figures."""

    arm: Arm
    block: int
    scenario: str
    setting: str
    metric: str
    value: float


class TargetReport(Message):
    """Results of one run: one plan on one device type."""

    run_id: int
    plan: TestPlan
    device_type: str
    device_summary: str
    emulated: bool
    declared_topology: Topology
    outcome: Outcome | None
    failure: Failure | None
    verdict: Verdict
    """Verdict of the primary metric over all scenarios: the most severe significant one."""
    headline: str
    """The verdict in one sentence, with its figures."""
    reasons: list[str] = Field(default_factory=list)
    """Reasons of the verdicts, each once. Secondary metrics that moved against a verdict come first."""
    comparisons: list[Comparison]
    ladder: Ladder | None = None
    """The patches of the series one by one, if it was walked."""
    environment: Environment | None
    values: list[BootValue]
    curves: list[MetricCurve] = Field(default_factory=list)
    """Curves, if the plan defines any."""
    workqueues: list[WorkqueueCell] = Field(default_factory=list)
    waits: list[WaitCell] = Field(default_factory=list)
    """How long work items waited, and where they started; empty if the plan has no traced repetitions."""
    instrument: list[InstrumentCell] = Field(default_factory=list)
    """Where the counts come from; empty if the device is not instrumented."""
    ran: RanReport | None = None
    """Which changed lines or functions ran; null if neither boots nor traced boots report it."""
    noise_floors: list[NoiseFloor] = Field(default_factory=list)
    canaries: list[CanaryRecord] = Field(default_factory=list)
    """What A/A comparisons of this plan had shown of the devices that were used, when the report was made."""
    """Noise floors of the judged metrics on an instrumented device; those that were not measured are absent."""
    explanation: Explanation | None = None
    """What differs beside the primary metrics that differ; null if none does."""
    references: list[Reference]
    unsupported: list[UnsupportedView]
    findings: list[FindingView]
    byte_identical: bool = False
    """True if both kernels are byte-identical: nothing was booted, and the verdict needs no figures."""
    blocks_planned: int
    blocks_completed: int
    layouts: int = Field(default=1, ge=1)
    """Layouts of the kernels: block b booted layout b modulo this number of both."""
    looks: list[int] = Field(default_factory=list)
    """Numbers of blocks after which the run could stop; empty if its size was fixed."""
    looked: list[LookRecord] = Field(default_factory=list)
    """The looks that took place. The last one says why the run stopped."""
    discarded: dict[Arm, int]
    """Discarded blocks by the arm that they count against."""
    discarded_by_lab: int = 0
    """Blocks discarded for a failure of the lab. They count against no arm."""
    overhead_s: float | None


class Report(Message):
    """Report of a finished submission."""

    submission: SubmissionView
    generated_at: datetime
    lab_url: str
    summary: str = ""
    """What was found on all targets, and what was not measured.

    Example: `Better: locks per flush 34 -> 4 on xeon-2s (emulated). Speed was not measured.`
    """
    targets: list[TargetReport]
    sweep: SweepReport | None = None
    """Metrics over the topology; null if the submission has no sweep."""
    failed_at: list[str] = Field(default_factory=list)
    """Where the submission's failure occurred: boots by run and kernel, builds, or the apply."""
    attempts: list[AttemptView]
    config_diff: list[str]
    """Options of the kernel configuration that differ between baseline and candidate, as `CONFIG_X y -> n`."""
    config_compared: bool = True
    """False if a kernel's configuration was not available: then an empty `config_diff` says nothing."""
    config_sha256: str
    diff: str = ""
    """Diff of the whole series, if a target reports which of its lines ran; a long one is truncated."""
    method: str = ""
    """Description of the statistical method, stored with the report in case the method changes."""
