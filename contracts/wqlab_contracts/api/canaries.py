"""REST resources of canaries: what A/A comparisons, whose arms have the same source, show of a device."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field, computed_field

from ..enums import CanaryKind, Evidence, Role, Scale
from ..messages import Message
from ..units import effect_unit
from .base import ComputedResource


class SmallestEffect(Message):
    """Smallest effect that a number of blocks finds in four of five cases."""

    blocks: int
    effect: float | None
    """Percent for scale `ratio`, the metric's unit for `difference`; null if too many boots are far from the others."""


class FalsePositiveRate(Message):
    """How many A/A comparisons a verdict called different."""

    comparisons: int
    """Comparisons with noise. Those whose boots all gave the same count are in `constant`."""
    called_different: int
    constant: int
    rate: float | None
    """Share of `called_different`, from 0 to 1; null without a comparison."""
    rate_low: float | None
    """Lower end of the rate's 95 % interval. Comparisons of one run share their boots, so fewer of them are counted."""
    rate_high: float | None
    """Its upper end."""


class CanaryMetric(ComputedResource):
    """Noise of one metric of a plan on a device."""

    metric: str
    unit: str
    scale: Scale
    role: Role
    evidence: Evidence
    scenario: str
    """The scenario with the highest floor, which the floor and the effects belong to."""
    floor: float | None
    """Robust standard deviation between boots: percent for scale `ratio`, the metric's unit for `difference`. null if
    every boot gave the same value."""
    blocks: int
    """Blocks that the floor is calculated from."""
    effects: list[SmallestEffect]
    """For 6, 8, 10 and 16 blocks; empty without a floor."""
    false_positives: FalsePositiveRate

    @computed_field  # type: ignore[prop-decorator]
    @property
    def effect_unit(self) -> str:
        """Unit of `floor` and `effects`."""
        return effect_unit(self.scale, self.unit)


class CanaryRecord(Message):
    """Canaries of one plan on one device, with arms that differ in one way. If the plan changes, it starts again."""

    device: str
    device_type: str
    plan: str
    kind: CanaryKind
    canaries: int
    """Finished canaries, the newest 100 of the last 180 days."""
    since: datetime
    until: datetime
    false_positives: FalsePositiveRate
    """Of all primary and secondary metrics and scenarios."""
    metrics: list[CanaryMetric]
    """Primary and secondary metrics that are evidence, in the plan's order."""
    line: str = Field(default="")
    """The record as a sentence: `On xeon-2s-1, 412 A/A comparisons of xfs-fsync: 11 called different, 2.7 %`."""
