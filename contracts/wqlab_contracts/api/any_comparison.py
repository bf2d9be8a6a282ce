"""Comparison of any two measured sides: arms of submissions, heads of watched trees, settings, devices."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field, computed_field

from ..enums import Arm, Direction, Evidence, Role, Scale
from ..messages import Message
from ..units import effect_unit
from .base import ComputedResource
from .report import ArmSummary, EnvironmentDifference
from .submissions import SubmissionRequest, TargetSummary


class Pairing(StrEnum):
    """How the boots of two sides belong together, which decides what can be said."""

    PAIRED = "paired"
    """Boots of the same blocks of one run: their differences have an exact interval."""
    UNPAIRED = "unpaired"
    """Boots of two runs on the same device in the same environment: the interval is wider, because it allows for an
    offset between the runs."""
    ENVIRONMENTS = "environments"
    """Something other than the kernel or the setting differs: the figures have no interval, and a difference cannot be
    attributed to the kernel."""


class ComparedSide(Message):
    """One side of the comparison."""

    selector: str
    """As given."""
    submission_id: int
    title: str
    arm: Arm
    tree: str
    commit: str
    """Commit of the kernel; of a series, its base. Empty if it is not known."""
    devices: list[str]
    """Devices of the compared boots."""
    targets: list[TargetSummary]
    """Targets of the submission, with its verdicts against its own baseline."""
    finished_at: datetime | None


class ComparedFigure(ComputedResource):
    """One metric in one scenario on both sides."""

    plan: str
    device_types: tuple[str, str]
    scenario: str
    settings: tuple[str, str]
    metric: str
    unit: str
    scale: Scale
    direction: Direction
    role: Role
    evidence: Evidence
    left: ArmSummary
    right: ArmSummary
    pairs: int
    """Number of pairs of boots; 0 if the boots are not paired."""
    effect: float | None = None
    """Right against left: percent for scale ratio, units for difference; null without evidence."""
    ci95: tuple[float, float] | None = None
    """null in different environments, without evidence, and with too few boots."""
    p: float | None = None
    """Not adjusted for the number of figures; null if `ci95` is."""
    text: str
    """What can be said, in words. There is no verdict."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def effect_unit(self) -> str:
        """Unit of `effect` and `ci95`."""
        return effect_unit(self.scale, self.unit)


class PairedRun(Message):
    """A submission that would measure both sides in the same blocks."""

    request: SubmissionRequest | None
    """Body of POST /submissions; null if no submission can measure both."""
    why: str
    """What it measures, or why it is not possible."""


class AnyComparison(Message):
    """Two sides with the figures that both have."""

    left: ComparedSide
    right: ComparedSide
    pairing: Pairing
    says: str
    """What the pairing allows to be said."""
    differences: list[EnvironmentDifference] = Field(default_factory=list)
    """Facts of the environment that differ; `baseline` is the left side, `candidate` the right side."""
    figures: list[ComparedFigure]
    paired_run: PairedRun | None
    """null if the sides are paired already."""
