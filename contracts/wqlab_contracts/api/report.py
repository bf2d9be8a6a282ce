"""The report of a submission: comparisons, what stands beside them, and what went wrong."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Self

from pydantic import Field, model_validator

from ..enums import Arm, Direction, Evidence, Outcome, Question, Role, Scale, Verdict
from ..messages import Failure, MeasuredTopology, Message
from ..specs import Reference, TestPlan, Topology
from .curves import MetricCurve
from .submissions import FindingView, SubmissionView
from .workqueues import WorkqueueCell


class ArmSummary(Message):
    """Over boots, never over repetitions: each boot counts once, with the median of its repetitions."""

    mean: float
    stddev: float | None
    """Null for a single boot."""
    n: int


class Comparison(Message):
    plan: str
    device_type: str
    scenario: str
    setting: str
    question: Question
    reference: str
    """What it is compared with: `baseline` (question kernel) or the reference setting (question setting)."""
    kernel: Arm | None = None
    """Question setting: the kernel both settings ran on."""
    metric: str
    unit: str
    scale: Scale
    direction: Direction
    role: Role
    evidence: Evidence
    baseline: ArmSummary | None
    candidate: ArmSummary | None
    effect: float | None = None
    """Percent for scale ratio, units for difference; null without evidence or enough data."""
    ci95: tuple[float, float] | None = None
    p: float | None = None
    p_adjusted: float | None = None
    p_signflip: float | None = None
    delta: float | None = None
    exact: bool = False
    """Every boot of each arm gave the same integer: the two integers are the result, there is no p."""
    verdict: Verdict | None = None
    """Null for explanatory metrics, which never make a verdict (without evidence they say `no_evidence` all the same),
    and for a change of a metric of which neither direction is better."""
    reason: str = ""
    """Why this verdict, in words."""
    blocks_needed: int | None = None
    """How many more blocks, beyond those measured, would probably decide; null when none would."""
    blocks_discarded: int = 0

    @model_validator(mode="after")
    def _no_evidence_is_a_value_only(self) -> Self:
        """Raises ValueError: here and nowhere else, so that no report can make more of such a figure."""
        if self.evidence is not Evidence.NONE:
            return self
        inferred = (self.effect, self.ci95, self.p, self.p_adjusted, self.p_signflip, self.delta, self.blocks_needed)
        spreads = [arm.stddev for arm in (self.baseline, self.candidate) if arm is not None]
        judged = self.verdict not in {None, Verdict.NO_EVIDENCE, Verdict.UNSUPPORTED, Verdict.FAILED}
        if self.exact or judged or any(figure is not None for figure in (*inferred, *spreads)):
            raise ValueError(
                f"{self.metric} is no evidence: it has a mean and no effect, interval, p, spread or verdict"
            )
        return self


class AttemptView(Message):
    """Everything that went wrong on the way, none left out."""

    what: Literal["apply", "build", "run"] = "run"
    run_id: int | None
    build_id: int | None = None
    plan: str | None
    """Null for an apply or a build: they serve every target of the submission."""
    device_type: str | None
    device: str
    """The device; for an apply or a build the worker that tried."""
    block: int | None
    arm: Arm | None
    attempt: int
    failure: Failure
    at: datetime | None = None


class UnsupportedView(Message):
    scenario: str
    setting: str
    metric: str | None
    arm: Arm
    reason: str


class Environment(Message):
    """What a run's boots reported of themselves."""

    device: str
    topology: MeasuredTopology | None
    cmdline: dict[Arm, str]
    release: dict[Arm, str]
    build_id_gnu: dict[Arm, str]
    facts: dict[str, str]
    commands: dict[str, str]
    """Scenario -> the exact workload command line."""


class BootValue(Message):
    """One boot's value of one metric: what the comparisons are made of and what figures draw."""

    arm: Arm
    block: int
    scenario: str
    setting: str
    metric: str
    value: float


class TargetReport(Message):
    """One plan on one device type: a run."""

    run_id: int
    plan: TestPlan
    device_type: str
    device_summary: str
    emulated: bool
    declared_topology: Topology
    outcome: Outcome | None
    failure: Failure | None
    verdict: Verdict
    """Of the primary metric over all scenarios: the worst that is certain."""
    headline: str
    """The verdict in one sentence, with the figures that carry it."""
    reasons: list[str] = Field(default_factory=list)
    """Why each comparison ended as it did, once per reason; first what speaks against a verdict."""
    comparisons: list[Comparison]
    environment: Environment | None
    values: list[BootValue]
    curves: list[MetricCurve] = Field(default_factory=list)
    """Of a plan whose scenarios are points of an ordered quantity."""
    workqueues: list[WorkqueueCell] = Field(default_factory=list)
    references: list[Reference]
    unsupported: list[UnsupportedView]
    findings: list[FindingView]
    blocks_planned: int
    blocks_completed: int
    discarded: dict[Arm, int]
    overhead_s: float | None


class Report(Message):
    submission: SubmissionView
    generated_at: datetime
    lab_url: str
    summary: str = ""
    """The verdicts of all targets in one sentence: `improves xeon-2s, no change on ryzen-3900x`."""
    targets: list[TargetReport]
    attempts: list[AttemptView]
    config_diff: list[str]
    """Lines of the kernel configuration that differ between baseline and candidate."""
    config_sha256: str
    method: str = ""
    """How the verdicts were reached, in words; kept with the report, so that it stays true when the method changes."""
