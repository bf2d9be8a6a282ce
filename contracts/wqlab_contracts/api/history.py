"""REST resources of the history of watched trees: lines, their points, and shifts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, computed_field

from ..enums import BisectionState, Direction, Evidence, Role, Scale, ShiftSource, ShiftState, Verdict
from ..messages import Message
from ..units import effect_unit
from .base import ComputedResource
from .watches import HeadRef

NOTES_LIMIT = 4_000


class HistoryLevel(Message):
    """Neighbouring points of a line with one level, in one environment."""

    start: int
    """Index of the first point."""
    end: int
    """Index after the last point."""
    middle: float
    """Median of the values."""
    spread: float
    """Standard deviation of a point around the level, estimated from neighbouring points."""


class HistoryPoint(Message):
    """Value of a metric at one head of a watched tree."""

    head: HeadRef
    at: datetime
    """When the head was measured."""
    value: float
    """Mean over the boots of the head's kernel."""
    stddev: float | None
    """Standard deviation between boots; null for a single boot."""
    n: int
    """Number of boots; 0 if the kernel is byte-identical to that of the head before, whose value it has."""
    effect: float | None
    """Change from the head before, measured side by side; null if there was none, or without evidence."""
    ci95: tuple[float, float] | None
    verdict: Verdict | None
    run_id: int
    submission_id: int
    cut: str
    """What has changed in the environment since the point before; empty if nothing has."""


class HistoryLine(ComputedResource):
    """A metric of one plan and setting, on one device type, over the heads of a branch or of the tags of a pattern."""

    id: int
    tree: str
    """Watched tree."""
    ref: str
    """Branch, or pattern of tags."""
    plan: str
    device_type: str
    scenario: str
    setting: str
    metric: str
    unit: str
    scale: Scale
    direction: Direction
    role: Role
    evidence: Evidence
    points: int
    """Number of points."""
    last: HistoryPoint | None
    level: HistoryLevel | None
    """The last level."""
    recent: list[float] = Field(default_factory=list)
    """Values of the last 40 points, oldest first."""
    delta: float | None
    """Least effect that is relevant, in `effect_unit`; null if the metric has none."""
    open_shifts: int
    """Number of its shifts that are new or confirmed."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def effect_unit(self) -> str:
        """Unit of effects on this line."""
        return effect_unit(self.scale, self.unit)


class ShiftBisection(Message):
    """What the bisection of a shift has found so far."""

    id: int
    state: BisectionState
    culprit: str | None
    """Commit that is found or suspected; of a range its last one."""
    first: str | None
    """First commit of the range; equal to the culprit unless commits before it cannot be measured."""
    subject: str


class HistoryShift(ComputedResource):
    """A change of a line's level between two heads, and what became of it."""

    id: int
    line: HistoryLine
    state: ShiftState
    source: ShiftSource
    before: HeadRef
    """Last head with the old level."""
    after: HeadRef
    """First head with the new level."""
    suspected_effect: float
    """Change when it was suspected, in the line's `effect_unit`."""
    worse: bool | None
    """True if the suspected change is to the worse; null for a metric without a better direction."""
    submission_id: int | None
    """Submission that measures both sides again."""
    bisection: ShiftBisection | None = None
    """The bisection that searches the commit with the change; null if the shift is not confirmed or not bisected."""
    effect: float | None
    """Change in that submission; null while there is none, or if it was not measured."""
    ci95: tuple[float, float] | None
    verdict: Verdict | None
    reason: str
    """Why it is in this state, or what its confirmation waits for."""
    owner: str
    """Account that looks after it; empty if none does."""
    notes: str
    created_at: datetime
    decided_at: datetime | None
    """When the paired run ended."""
    changed_at: datetime
    changed_by: str
    """Account of the last change by a person; empty if there was none."""


class HistoryLineData(HistoryLine):
    """A line with its points."""

    series: list[HistoryPoint]
    """Oldest first."""
    levels: list[HistoryLevel]
    """Oldest first; they refer to `series` by index."""
    shifts: list[HistoryShift]
    """Oldest first."""


class ShiftChange(Message):
    """Change of a shift by a person. Fields that are absent or null stay as they are."""

    state: Literal["new", "confirmed", "explained", "fixed"] | None = None
    """`new` has both sides measured again. Only a paired run sets the state `not_reproduced`."""
    owner: Annotated[str, StringConstraints(max_length=64)] | None = None
    """An account, or an empty string."""
    notes: Annotated[str, StringConstraints(max_length=NOTES_LIMIT)] | None = None
