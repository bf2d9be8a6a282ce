"""REST resources of a quote: what a submission would cost the lab and when it would be done."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from ..enums import Direction, Evidence, Scale
from ..messages import Message
from .submissions import UnitCounts


class QuoteBasis(StrEnum):
    """Where an estimate comes from."""

    MEASURED = "measured"
    """Boots or builds like these were timed."""
    PLANNED = "planned"
    """Never timed here: the plan's own times and limits, so more likely too long than too short."""
    UNKNOWN = "unknown"
    """Neither: there is no estimate."""


class QuoteMistake(Message):
    """The same items as in the problem that `create_submission` would answer."""

    pointer: str
    """JSON pointer into the request."""
    detail: str


class DetectableEffect(Message):
    """What the target's primary metric can show."""

    metric: str
    unit: str
    scale: Scale
    direction: Direction
    evidence: Evidence
    delta: float | None
    """The plan's smallest relevant effect: percent for `ratio`, units for `difference`."""
    effect: float | None
    """The smallest effect that so many blocks would find in four of five cases, at the spread seen so far; same scale
    as delta. Null when no spread was measured or no test can decide with so few blocks."""
    blocks_measured: int
    """Past blocks of this plan on this device type that the spread was taken from."""
    exact: bool
    """Past boots always gave the same whole number: any difference shows with two blocks."""
    why: str
    """In words."""


class BuildQuote(Message):
    """Kernels of one recipe that the targets need, baseline and candidate."""

    recipe: str
    kernels: int
    reused: int
    """Of these, how many exist already, if the series sits on the tree's last known commit."""
    build_s: float | None
    """The others, one after another."""
    basis: QuoteBasis
    measured_builds: int


class TargetQuote(Message):
    index: int
    """In the request's targets."""
    plan: str
    device_type: str
    emulated: bool
    blocks: int
    boots: int
    settings: int
    boot_s: float | None
    """One boot with everything in it, power cycle to result."""
    device_s: float | None
    """The device's time: all boots."""
    basis: QuoteBasis
    measured_boots: int
    """Past boots that the time was taken from."""
    basis_text: str
    detectable: DetectableEffect | None
    """Null for a plan without a primary metric."""
    queue_position: int
    """From 1, among the runs that wait for a device of the type, if it were queued now."""
    ahead_runs: int
    """Runs that would get a device before it, those at work included."""
    ahead_boots: int
    units: UnitCounts
    starts_at: datetime | None
    """Null when something in the way cannot be estimated, or no unit can take it."""
    ends_at: datetime | None
    notes: list[str]
    """What stands in the way or is worth knowing, in words."""


class Quote(Message):
    at: datetime
    errors: list[QuoteMistake]
    """Every mistake of the request; with any, `create_submission` refuses it. Targets without one are quoted."""
    builds: list[BuildQuote]
    build_s: float | None
    targets: list[TargetQuote]
    device_s: float | None
    """Device time of all targets; null when one of them has no estimate."""
    starts_at: datetime | None
    """The first target's start."""
    ends_at: datetime | None
    """The last target's end: when the report would be there."""
    basis: QuoteBasis
    """The weakest of everything the times were made of."""
