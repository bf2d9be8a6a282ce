"""REST resources of a quote: estimated cost and finish time of a submission."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field, computed_field

from ..enums import Direction, Evidence, Scale
from ..messages import Message
from ..units import effect_unit
from .base import ComputedResource
from .canaries import CanaryRecord
from .devices import DeviceCounts


class QuoteBasis(StrEnum):
    """Source of an estimate."""

    MEASURED = "measured"
    """Measured times of similar boots or builds."""
    PLANNED = "planned"
    """A guess, since the plan was never measured on the device type: its boots on a similar type, else the run times
    and shares of the time limits that plan and device type state."""
    UNKNOWN = "unknown"
    """No estimate exists."""


class QuoteMistake(Message):
    """One error, as in the problem that `create_submission` would return."""

    pointer: str
    """JSON pointer into the request."""
    detail: str


class DetectableEffect(ComputedResource):
    """Smallest effect that a target can detect in its primary metric."""

    metric: str
    unit: str
    scale: Scale
    direction: Direction
    evidence: Evidence
    delta: float | None
    """The plan's smallest relevant effect: percent for `ratio`, units for `difference`."""
    effect: float | None
    """Smallest effect that this number of blocks finds in four of five cases at the measured spread, on the scale of
    delta. null if no spread was measured or if no test can decide with so few blocks."""
    blocks_measured: int
    """Number of past blocks of this plan on this device type that the spread is calculated from."""
    exact: bool
    """True if all past boots gave the same integer; two blocks then show any difference."""
    why: str
    """Explanatory text."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def effect_unit(self) -> str:
        """Unit of `delta` and `effect`."""
        return effect_unit(self.scale, self.unit)


class BuildQuote(Message):
    """Kernels of one recipe that the targets need, for baseline and candidate."""

    recipe: str
    kernels: int
    reused: int
    """Number of these that exist, if the series is based on the tree's last known commit."""
    build_s: float | None
    """Total build time of the others, built one after another."""
    basis: QuoteBasis
    measured_builds: int
    links: int = 0
    """Number of further links of the kernels that do not exist, for other layouts; `build_s` has their time."""


class TargetQuote(Message):
    """Estimated cost and start of one target."""

    index: int
    """Index in the request's targets."""
    plan: str
    device_type: str
    emulated: bool
    blocks: int
    """Number of blocks; with looks the largest one."""
    looks: list[int] = Field(default_factory=list)
    """Numbers of blocks after which the run may stop; empty if its size is fixed."""
    expected_blocks: float | None = None
    """Mean number of blocks if there is no difference and the spread is that of past blocks; null without looks or if
    no spread was measured. A large difference takes fewer blocks."""
    boots: int
    settings: int
    boot_s: float | None
    """Duration of one boot, from power cycle to result."""
    device_s: float | None
    """Device time: duration of all boots; with looks of the largest number."""
    expected_device_s: float | None = None
    """Device time of `expected_blocks`; null if that is."""
    basis: QuoteBasis
    measured_boots: int
    """Number of past boots that the time is calculated from."""
    basis_text: str
    detectable: DetectableEffect | None
    """null for a plan without a primary metric."""
    canaries: list[CanaryRecord] = Field(default_factory=list)
    """What A/A comparisons of this plan have shown of each device of the type, by device; empty if there were none."""
    queue_position: int
    """Position, from 1, among the runs waiting for a device of the type, if queued now."""
    ahead_runs: int
    """Number of runs ahead in the queue, including those that are running."""
    ahead_boots: int
    device_counts: DeviceCounts
    starts_at: datetime | None
    """null if a run ahead has no estimate, or no device is usable."""
    ends_at: datetime | None
    notes: list[str]
    """Obstacles and remarks, as text."""


class QuotaName(StrEnum):
    """What a quota limits."""

    SUBMISSIONS_WAITING = "submissions_waiting"
    """Submissions that are not finished."""
    DEVICE_MINUTES = "device_minutes"
    """Device time in 24 hours, with the estimated time of unfinished runs."""
    BUILD_MINUTES = "build_minutes"
    """Time of kernel builds in 24 hours."""
    BYTES = "bytes"
    """Bytes that the submissions of 24 hours have stored."""


class Quota(Message):
    """One quota of a submitter and how much of it is left."""

    name: QuotaName
    limit: float
    used: float
    left: float
    """0 if the quota is exceeded; `create_submission` then answers 429."""
    available_at: datetime | None = None
    """When something is left again, if nothing is left now; null if something is, or if it cannot be estimated."""


class Quote(Message):
    """Estimated cost and finish time of a submission."""

    at: datetime
    errors: list[QuoteMistake]
    """Errors in the request; `create_submission` rejects a request with errors. Targets without errors are quoted."""
    builds: list[BuildQuote]
    build_s: float | None
    targets: list[TargetQuote]
    device_s: float | None
    """Device time of all targets; null if one of them has no estimate. With looks it is the most."""
    expected_device_s: float | None = None
    """Device time of all targets, with the expected number of blocks of those that have one; null if none has."""
    starts_at: datetime | None
    """Start of the first target."""
    ends_at: datetime | None
    """End of the last target, when the report is available."""
    basis: QuoteBasis
    """Weakest basis of all estimates used."""
    quotas: list[Quota] = Field(default_factory=list)
    """Quotas of the submitter before this submission; empty for maintainers and administrators."""
