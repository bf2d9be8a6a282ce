"""REST resource of a comparison: one metric in one scenario and setting, with its verdict."""

from __future__ import annotations

from typing import Self

from pydantic import computed_field, model_validator

from ..enums import Arm, Direction, Evidence, NotMeasuredCause, Question, Role, Scale, Verdict
from ..messages import Message
from ..units import effect_unit
from .base import ComputedResource


class Mode(Message):
    """One of two levels that the boots of a device fall into."""

    mean: float
    n: int
    """Number of boots at this level."""


class ArmSummary(Message):
    """Mean and deviation over boots; the value of a boot is the median of its repetitions."""

    mean: float
    stddev: float | None
    """null for a single boot."""
    n: int
    modes: tuple[Mode, Mode] | None = None
    """The two levels of the boots, the lower one first, if they fall into two modes; null if they have one. With
    several devices: of the device with the most boots."""


class Comparison(ComputedResource):
    """Comparison of one metric in one scenario and setting, with its verdict."""

    plan: str
    device_type: str
    scenario: str
    setting: str
    question: Question
    reference: str
    """Reference of the comparison: `baseline` (question kernel) or the reference setting (question setting)."""
    kernel: Arm | None = None
    """Question setting: the kernel both settings ran on."""
    patch: int | None = None
    """Rung of a walk: number of the patch whose kernel is compared; `reference` is `baseline` or, for the kernel after
    another patch, `patch K`."""
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
    """Two-sided p of the exact sign-flip test on the clipped differences, over all looks at the run; at most .05 if
    `ci95` excludes zero, and only then."""
    p_adjusted: float | None = None
    """`p`, adjusted over the family of tests; the verdict depends on it."""
    p_student: float | None = None
    """p of Student's t test. The exact test has only steps of 2/2**n, too coarse for an adjustment over several tests;
    there, this value is adjusted instead of `p`."""
    delta: float | None = None
    exact: bool = False
    """True if all boots of each arm gave the same integer: the two integers are the result, without p values."""
    verdict: Verdict | None = None
    """null for explanatory metrics (but `no_evidence` without evidence), and for a significant change of a metric
    without a better direction."""
    reason: str = ""
    """Reason of the verdict, as text."""
    not_measured: NotMeasuredCause | None = None
    """Cause, if a figure of at least one side is missing; `reason` describes it."""
    not_validated: str = ""
    """Of a modelled figure: why the validation does not cover it, so that its verdict is `withheld`."""
    blocks_needed: int | None = None
    """Number of additional blocks that would probably decide; null if no number would."""
    blocks_discarded: int = 0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def effect_unit(self) -> str:
        """Unit of `effect`, `ci95` and `delta`."""
        return effect_unit(self.scale, self.unit)

    @model_validator(mode="after")
    def _reject_figures_without_evidence(self) -> Self:
        """Raise ValueError if a figure without evidence has more than a mean, so that no report can show more."""
        if self.evidence is not Evidence.NONE:
            return self
        p_values = (self.p, self.p_adjusted, self.p_student)
        inferred = (self.effect, self.ci95, *p_values, self.delta, self.blocks_needed)
        arms = [arm for arm in (self.baseline, self.candidate) if arm is not None]
        spreads = [each for arm in arms for each in (arm.stddev, arm.modes)]
        judged = self.verdict not in {None, Verdict.NO_EVIDENCE, Verdict.UNSUPPORTED, Verdict.FAILED}
        if self.exact or judged or any(figure is not None for figure in (*inferred, *spreads)):
            raise ValueError(
                f"{self.metric} is no evidence: it has a mean and no effect, interval, p, spread or verdict"
            )
        return self
