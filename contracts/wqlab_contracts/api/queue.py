"""REST resources of the lab's pages: queue and device history."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from ..enums import Arm, BootState, DeviceHealth, ErrorKind, Outcome, RunPurpose
from ..messages import CheckStep, Failure, Message
from .base import Page


class Waits(StrEnum):
    """Reason why a queued run has no device."""

    OFFERED = "offered"
    """A device is reserved; its lab's worker is about to start."""
    NEXT = "next"
    """The run gets a device at the next assignment."""
    BUSY = "busy"
    """All suitable devices are leased."""
    AHEAD = "ahead"
    """Runs with a higher score come first."""
    HEALTH_CHECK = "health_check"
    """Its devices are waiting for or undergoing a health check."""
    CAPACITY = "capacity"
    """The lab runs its maximum number of devices."""
    AWAY = "away"
    """The labs of its devices report them unavailable."""
    QUARANTINED = "quarantined"
    """Every device is quarantined."""


class RunsAhead(Message):
    """Runs of one submission that are running or precede a run in the queue."""

    submission_id: int | None
    """null for health checks of the lab."""
    owner: str
    plan: str
    runs: int
    running: bool
    boots_left: int


class QueueEntry(Message):
    """A queued run with its score and estimated start."""

    position: int
    """Position from 1, in the current order of assignment."""
    position_in_type: int
    run_id: int
    submission_id: int | None
    title: str
    owner: str
    purpose: RunPurpose
    plan: str
    device_type: str
    wanted_device: str | None
    """The only suitable device, for a health check."""
    offered_device: str | None
    queued_at: datetime
    waited_s: float
    priority: int
    aging: float
    """Score points gained by waiting."""
    devices_held: int
    """Number of devices that its owner's runs hold now."""
    share: float
    """Score points lost by held devices (0 or negative)."""
    score: float
    """priority + aging + share; the highest goes first."""
    waits: Waits
    ahead: list[RunsAhead]
    ahead_runs: int
    ahead_boots: int
    starts_at: datetime | None
    """Estimated start; null if a run ahead has no estimate."""
    why: str
    """The reason for waiting in one or two sentences."""


class WaitingOrder(Message):
    """What a source of submissions, such as a watch, wants to have measured, and which is not submitted yet."""

    source: str
    key: str
    """What is measured, named within the source: the id of a head or decision, `ID:STEP` of a bisection."""
    watch: str | None
    reason: str
    """Why it waits; empty until the first attempt."""
    retry_at: datetime
    """Time of the next attempt to submit it."""


class QueueView(Message):
    """The queue of the lab."""

    at: datetime
    rule: str
    """Text on the ordering rule."""
    total: int
    entries: list[QueueEntry]
    """Queued runs; at most 500."""
    waiting_for_kernels: int
    """Runs that cannot be queued yet because their kernels are not built."""
    orders: list[WaitingOrder]
    """The oldest orders that wait; at most 100."""


class HealthChange(Message):
    """A change of a device's health."""

    at: datetime
    health: DeviceHealth
    reason: str
    by: str
    """Origin of the change: a maintainer's name, `run 12`, or `device-types` for an edited file."""
    run_id: int | None


class DeviceRun(Message):
    """One attempt of a run on the device, with its failure and last boot."""

    run_id: int
    attempt: int
    submission_id: int | None
    title: str
    owner: str
    plan: str
    device: str
    purpose: RunPurpose
    outcome: Outcome | None
    """null while the run holds the device."""
    failure_kind: ErrorKind | None
    failure: str
    """Summary of the failure; empty without a failure."""
    started_at: datetime
    finished_at: datetime | None
    device_type: str
    boots: int
    failure_detail: Failure | None
    last_boot_id: int | None


class BootConsole(Message):
    """A boot; its console log is `GET /runs/{run_id}/console?boot={boot_id}`."""

    boot_id: int
    run_id: int
    submission_id: int | None
    purpose: RunPurpose
    plan: str
    block: int
    arm: Arm
    attempt: int
    state: BootState
    outcome: Outcome | None
    failure: str
    started_at: datetime
    finished_at: datetime | None
    console_bytes: int
    console_truncated: bool


class DeviceCheck(Message):
    """A health check of a device that a maintainer asked for, with a result for each step."""

    id: int
    device: str
    by: str
    created_at: datetime
    finished_at: datetime | None
    outcome: Outcome | None
    """null while the check runs."""
    failure: Failure | None
    """Failure that ended the check before its last step, with advice."""
    steps: list[CheckStep]
    """Finished steps, in order."""
    doing: str
    """Current activity; empty after the end."""
    health_run_id: int | None
    """Id of the health check; null until it is ordered."""
    changes: int
    """Version of this resource; grows with every change."""


class DeviceHistory(Message):
    """Health changes, runs, checks and boots of a device."""

    device: str
    checks: list[DeviceCheck]
    """Newest first, at most 10."""
    health: list[HealthChange]
    """Newest first, at most 50."""
    runs: Page[DeviceRun]
    """Newest first."""
    consoles: list[BootConsole]
    """The device's last ten boots, newest first."""
