"""REST resources of the lab's pages: the queue and why it stands so, what ran where, a device's history."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from ..enums import Arm, BootState, DeviceHealth, ErrorKind, Outcome, RunPurpose
from ..messages import CheckStep, Failure, Message
from .submissions import Page


class Waits(StrEnum):
    """Why a queued run has no device yet."""

    OFFERED = "offered"
    """A device is set aside; its lab's worker is about to begin."""
    NEXT = "next"
    """It gets a device in the next moment."""
    BUSY = "busy"
    """All devices that it could have are leased."""
    AHEAD = "ahead"
    """Runs with a higher score come first."""
    UNCHECKED = "unchecked"
    """Its devices wait for, or are in, a health check."""
    CAPACITY = "capacity"
    """The lab runs as many devices at once as it can."""
    AWAY = "away"
    """The labs of its devices cannot give them now."""
    OUT_OF_SERVICE = "out_of_service"
    """Every device is quarantined."""


class RunsAhead(Message):
    """Runs of one submission that stand in the way, at work or before it in the queue."""

    submission_id: int | None
    """Null for the lab's own health checks."""
    owner: str
    plan: str
    runs: int
    running: bool
    boots_left: int


class QueueEntry(Message):
    position: int
    """From 1, in the order in which devices are given out now."""
    position_in_type: int
    run_id: int
    submission_id: int | None
    title: str
    owner: str
    purpose: RunPurpose
    plan: str
    device_type: str
    wanted_device: str | None
    """A health check is for one device."""
    offered_device: str | None
    queued_at: datetime
    waited_s: float
    priority: int
    aging: float
    """Points gained by waiting."""
    devices_held: int
    """Devices that its owner has now."""
    share: float
    """Points lost by them (0 or negative)."""
    score: float
    """priority + aging + share; the highest goes first."""
    waits: Waits
    ahead: list[RunsAhead]
    ahead_runs: int
    ahead_boots: int
    starts_at: datetime | None
    """Estimated; null when the time of something ahead is not known."""
    why: str
    """The same in one or two sentences."""


class QueueView(Message):
    at: datetime
    rule: str
    """How the order is made, in words."""
    aging_per_minute: float
    share_per_device: float
    total: int
    entries: list[QueueEntry]
    """At most 500."""
    waiting_for_kernels: int
    """Runs that cannot be queued yet because their kernels are not built."""


class TimelineBar(Message):
    """One time a run had a device."""

    run_id: int
    attempt: int
    submission_id: int | None
    title: str
    owner: str
    plan: str
    device: str
    purpose: RunPurpose
    outcome: Outcome | None
    """Null while it has the device."""
    failure_kind: ErrorKind | None
    failure: str
    """Its summary; empty without one."""
    started_at: datetime
    finished_at: datetime | None


class TimelineDevice(Message):
    name: str
    device_type: str
    lab: str
    health: DeviceHealth
    retired: bool


class Timeline(Message):
    at: datetime
    """The server's clock: where open bars end now."""
    since: datetime
    until: datetime
    devices: list[TimelineDevice]
    """By type and name; retired ones only where they have a bar on this page."""
    bars: list[TimelineBar]
    """By start."""
    next: str | None
    """Cursor for the bars that start later."""


class HealthChange(Message):
    at: datetime
    health: DeviceHealth
    reason: str
    by: str
    """Who or what changed it: a maintainer's name, `run 12`, or `device-types` for an edited file."""
    run_id: int | None


class DeviceRun(TimelineBar):
    """A run on the device with what is needed to read on."""

    device_type: str
    boots: int
    failure_detail: Failure | None
    last_boot_id: int | None


class BootConsole(Message):
    """A boot whose console can be read: `GET /runs/{run_id}/console?boot={boot_id}`."""

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
    """A walk through everything that a device must do before its figures are worth anything."""

    id: int
    device: str
    by: str
    created_at: datetime
    finished_at: datetime | None
    outcome: Outcome | None
    """Null while it goes on."""
    failure: Failure | None
    """Why it ended before its last step, with how to mend that."""
    steps: list[CheckStep]
    """Those that have ended, in their order."""
    doing: str
    """What happens now; empty when it has ended."""
    health_run_id: int | None
    """The health check that takes the first steps."""
    noise_run_id: int | None
    """The run of ten boots of one kernel that measures the noise."""
    changes: int
    """Grows with everything that is told of it."""


class DeviceHistory(Message):
    device: str
    checks: list[DeviceCheck]
    """Newest first, at most 10."""
    health: list[HealthChange]
    """Newest first, at most 50."""
    runs: Page[DeviceRun]
    """Newest first."""
    consoles: list[BootConsole]
    """The device's last ten boots, newest first."""
